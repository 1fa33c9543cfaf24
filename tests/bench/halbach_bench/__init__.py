# SPDX-License-Identifier: BSD-3-Clause
"""scripts/bench: what it measures and how. One module a section; docs/benchmarking.md explains each."""
