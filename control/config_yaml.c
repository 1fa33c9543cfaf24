/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_yaml.c: from text to the nodes of one YAML document.
 *
 * Two passes of libyaml. The first sees events and refuses what a configuration does not need and
 * what could be used to harm: anchors and aliases (a few hundred bytes can stand for gigabytes),
 * tags, a second document, deep nesting. The second builds the nodes, which know their lines.
 */
#include <string.h>

#include "config_internal.h"

/* libyaml's words, and what they mean to the person who wrote the file. */
static const struct {
    const char *problem, *meaning;
} meanings[] = {
    {"mapping values are not allowed in this context",
     "a \": \" cannot stand here; indent the line like its neighbours, or put the value in quotes"},
    {"did not find expected key", "expected a key here; indent the line like its neighbours"},
    {"could not find expected ':'", "expected \": \" after a key"},
    {"did not find expected ',' or '}'", "expected \",\" or \"}\": is a \"{\" never closed?"},
    {"did not find expected ',' or ']'", "expected \",\" or \"]\": is a \"[\" never closed?"},
    {"did not find expected '-' indicator",
     "expected \"- \": indent the line like the other entries of the list"},
    {"block sequence entries are not allowed in this context",
     "a list entry (\"- \") cannot stand here; start it on a line of its own"},
    {"found unexpected end of stream", "the file ends inside quotes: close them"},
    {"did not find expected node content", "expected a value here"},
    {"did not find expected <document start>",
     "something follows the end of the document (\"...\"); remove it"},
    {"control characters are not allowed", "a control character; remove it"},
};

static const char *find_meaning(const char *problem)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (strcmp(problem, meanings[i].problem) == 0)
            return meanings[i].meaning;
    }
    return problem;
}

/* The start of line `line` (from 1). */
static const char *find_line(const char *text, const char *end, int line)
{
    while (--line > 0) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));

        if (newline == NULL)
            return end;
        text = newline + 1;
    }
    return text;
}

/* An IPv6 address that begins or ends with "::" is no plain YAML; that is the likeliest reason for
 * a colon out of place. */
static bool has_bare_ipv6(const char *line, const char *end)
{
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    size_t length = (size_t)((newline != NULL ? newline : end) - line);

    return memmem(line, length, "::", 2) != NULL && memchr(line, '"', length) == NULL &&
           memchr(line, '\'', length) == NULL;
}

static void complain_syntax(struct hb_config_reader *reader, const yaml_parser_t *parser,
                            const char *text, size_t size)
{
    const char *end = text + size, *line_start, *problem = parser->problem;
    int line = (int)parser->problem_mark.line + 1, column = (int)parser->problem_mark.column + 1;

    if (parser->error == YAML_MEMORY_ERROR || problem == NULL) {
        reader->no_memory = true;
        reader->errors++;
        return;
    }
    if (parser->error == YAML_READER_ERROR) { /* knows only how many bytes it had read */
        line = column = 1;
        for (size_t i = 0; i < parser->problem_offset && i < size; i++) {
            column = text[i] == '\n' ? 1 : column + 1;
            line += text[i] == '\n';
        }
    }
    line_start = find_line(text, end, line);
    if (strstr(problem, " tab ") != NULL ||
        (line_start + column - 1 < end && line_start[column - 1] == '\t'))
        hb_config_complain_at(reader, line, column, "a tab; YAML is indented with spaces");
    else if (parser->error != YAML_READER_ERROR && has_bare_ipv6(line_start, end))
        hb_config_complain_at(reader, line, column,
                              "%s (an IPv6 address that begins or ends with \"::\" needs quotes)",
                              find_meaning(problem));
    else if (strcmp(problem, "found character that cannot start any token") == 0)
        hb_config_complain_at(reader, line, column,
                              "a value cannot start with this character; put it in quotes");
    else
        hb_config_complain_at(reader, line, column, "%s", find_meaning(problem));
}

static void refuse_anchor_or_tag(struct hb_config_reader *reader, yaml_mark_t mark,
                                 const yaml_char_t *anchor, const yaml_char_t *tag)
{
    char quoted[HB_CONFIG_QUOTED];
    int line = (int)mark.line + 1, column = (int)mark.column + 1;

    if (anchor != NULL)
        hb_config_complain_at(reader, line, column,
                              "anchors (&%s) and aliases are not supported; write the value out",
                              hb_config_quote((const char *)anchor, quoted));
    if (tag != NULL)
        hb_config_complain_at(reader, line, column, "tags (%s) are not supported; remove it",
                              hb_config_quote((const char *)tag, quoted));
}

struct shape {
    int depth;
    int documents;
};

/* Looks at one event; complains about what a configuration may not have. */
static void check_event(struct hb_config_reader *reader, const yaml_event_t *event,
                        struct shape *shape)
{
    int line = (int)event->start_mark.line + 1, column = (int)event->start_mark.column + 1;
    char quoted[HB_CONFIG_QUOTED];

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++shape->documents == 2)
            hb_config_complain_at(reader, line, column,
                                  "a second document starts here; a configuration is one document: "
                                  "remove the \"---\"");
        break;
    case YAML_ALIAS_EVENT:
        hb_config_complain_at(reader, line, column,
                              "aliases (*%s) are not supported; write the value out",
                              hb_config_quote((const char *)event->data.alias.anchor, quoted));
        break;
    case YAML_SCALAR_EVENT:
        refuse_anchor_or_tag(reader, event->start_mark, event->data.scalar.anchor,
                             event->data.scalar.tag);
        break;
    case YAML_SEQUENCE_START_EVENT:
        shape->depth++;
        refuse_anchor_or_tag(reader, event->start_mark, event->data.sequence_start.anchor,
                             event->data.sequence_start.tag);
        break;
    case YAML_MAPPING_START_EVENT:
        shape->depth++;
        refuse_anchor_or_tag(reader, event->start_mark, event->data.mapping_start.anchor,
                             event->data.mapping_start.tag);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        shape->depth--;
        break;
    default:
        break;
    }
}

static void open_parser(yaml_parser_t *parser, const char *text, size_t size)
{
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(parser, (const unsigned char *)text, size);
}

/* The first pass. */
static bool check_shape(struct hb_config_reader *reader, const char *text, size_t size)
{
    struct shape shape = {0};
    uint32_t errors = reader->errors;
    yaml_parser_t parser;
    bool ended = false;

    if (!yaml_parser_initialize(&parser)) {
        reader->no_memory = true;
        return false;
    }
    open_parser(&parser, text, size);
    while (!ended && shape.depth <= HB_CONFIG_DEPTH_MAX) {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event)) {
            complain_syntax(reader, &parser, text, size);
            break;
        }
        check_event(reader, &event, &shape);
        ended = event.type == YAML_STREAM_END_EVENT;
        if (shape.depth > HB_CONFIG_DEPTH_MAX)
            hb_config_complain_at(reader, (int)event.start_mark.line + 1,
                                  (int)event.start_mark.column + 1, "nested deeper than %d levels",
                                  HB_CONFIG_DEPTH_MAX);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    if (ended && shape.documents == 0)
        hb_config_complain(reader, 0, "",
                           "there is nothing in it but comments; it needs at least "
                           "\"seed\", \"pools\" and \"services\"");
    return reader->errors == errors;
}

bool hb_config_yaml_load(struct hb_config_reader *reader, const char *text, size_t size,
                         yaml_document_t *document)
{
    yaml_parser_t parser;
    bool loaded;

    if (!check_shape(reader, text, size))
        return false;
    if (!yaml_parser_initialize(&parser)) {
        reader->no_memory = true;
        return false;
    }
    open_parser(&parser, text, size);
    loaded = yaml_parser_load(&parser, document);
    if (!loaded)
        complain_syntax(reader, &parser, text, size);
    yaml_parser_delete(&parser);
    return loaded;
}
