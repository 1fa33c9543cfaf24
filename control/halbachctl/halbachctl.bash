# SPDX-License-Identifier: BSD-3-Clause
# bash completion for halbachctl. Commands come from its own help, names of backends from control.

_halbachctl() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command='' verb='' word skip=0 index socket=()

    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if ((skip)); then
            skip=0
        elif [[ $word == --socket ]]; then
            socket=(--socket "${COMP_WORDS[index + 1]}")
            skip=1
        elif [[ $word == --pool || $word == --file || $word == -f || $word == --old ||
            $word == --deadline || $word == --at-deadline ]]; then
            skip=1
        elif [[ $word != -* && -z $command ]]; then
            command=$word
        elif [[ $command == hash && $word != -* && -z $verb ]]; then
            verb=$word
        fi
    done

    case $previous in
    --socket | --file | -f | --old | --backends | --keys | --out)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
        ;;
    --at-deadline)
        mapfile -t COMPREPLY < <(compgen -W 'keep reassign reset' -- "$current")
        return
        ;;
    --kind)
        mapfile -t COMPREPLY < <(compgen -W 'moves shares failures balance ring' -- "$current")
        return
        ;;
    --algorithms)
        mapfile -t COMPREPLY < <(compgen -W 'modulo ring ketama rendezvous skeleton jump maglev' -- "$current")
        return
        ;;
    --pool)
        # The second column of the table, up to the blank line after it.
        mapfile -t COMPREPLY < <(compgen -W "$(halbachctl "${socket[@]}" backends 2>/dev/null |
            awk 'NF == 0 { exit } NR > 1 { print $2 }' | sort -u)" -- "$current")
        return
        ;;
    esac

    if [[ $current == -* ]]; then
        local options='--socket --json --help --version'
        case $command in
        drain) options+=' --pool --deadline --at-deadline --force --wait' ;;
        weight) options+=' --pool --reset --force' ;;
        maintenance) options+=' --wait' ;;
        undrain) options+=' --pool' ;;
        backends) options+=' --pool --down --traffic' ;;
        plan) options+=' --file' ;;
        stats) options+=' --watch' ;;
        drops) options+=' --all' ;;
        hash)
            # They are many, and the command knows them.
            [[ -z $verb ]] || options=$(halbachctl help hash "$verb" 2>/dev/null | grep -o '^  --[a-z-]*')
            ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
        return
    fi

    case $command in
    '' | help)
        mapfile -t COMPREPLY < <(compgen -W "$(halbachctl help 2>/dev/null |
            awk '/^Commands:/ { inside = 1; next } NF == 0 { inside = 0 } inside { print $1 }' | sort -u)" -- "$current")
        ;;
    hash)
        if [[ $previous == hash ]]; then
            mapfile -t COMPREPLY < <(compgen -W 'compare balance owner prefer affected ring plot plan' -- "$current")
        fi
        ;;
    doctor)
        mapfile -t COMPREPLY < <(compgen -W "$(ls /sys/class/net 2>/dev/null)" -- "$current")
        ;;
    config)
        if [[ $previous == check ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        else
            mapfile -t COMPREPLY < <(compgen -W check -- "$current")
        fi
        ;;
    maintenance)
        mapfile -t COMPREPLY < <(compgen -W 'on off' -- "$current")
        ;;
    drain | undrain | weight)
        mapfile -t COMPREPLY < <(compgen -W "$(halbachctl "${socket[@]}" backends 2>/dev/null |
            awk 'NF == 0 { exit } NR > 1 { print $1 }' | sort -u)" -- "$current")
        ;;
    lookup)
        mapfile -t COMPREPLY < <(compgen -W 'tcp udp sctp' -- "$current")
        ;;
    esac
}

complete -o filenames -F _halbachctl halbachctl
