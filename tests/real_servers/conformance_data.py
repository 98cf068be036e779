"""What the conformance suite's server lists: schemas of tools and questions, resources, prompts."""

from typing import Any

Json = dict[str, Any]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

NOTHING: Json = {"type": "object", "properties": {}}
WIDE_SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
DEFAULTS: Json = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
TITLED = [{"const": "one", "title": "The first"}, {"const": "two", "title": "The second"}]
CHOICES: Json = {
    "untitledSingle": {"type": "string", "enum": ["one", "two"]},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["one", "two"], "enumNames": ["The first", "The second"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["one", "two"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
SCHEMAS: dict[str, Json] = {
    "json_schema_2020_12_tool": WIDE_SCHEMA,
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    "test_elicitation": {
        "type": "object",
        "properties": {"message": {"type": "string"}},
        "required": ["message"],
    },
    "test_x_mcp_header": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
}
TEXT_URI, IMAGE_URI, WATCHED_URI = "test://static-text", "test://static-binary", "test://watched-resource"
RESOURCES: list[Json] = [
    {"uri": TEXT_URI, "name": "text", "description": "Text.", "mimeType": "text/plain"},
    {"uri": IMAGE_URI, "name": "image", "description": "An image.", "mimeType": "image/png"},
    {"uri": WATCHED_URI, "name": "watched", "description": "It may change.", "mimeType": "text/plain"},
]
TEMPLATES: list[Json] = [
    {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
]
PROMPTS: list[Json] = [
    {"name": "test_simple_prompt", "description": "Without arguments."},
    {
        "name": "test_prompt_with_arguments",
        "description": "With two arguments.",
        "arguments": [{"name": "arg1", "required": True}, {"name": "arg2", "required": True}],
    },
    {
        "name": "test_prompt_with_embedded_resource",
        "description": "With a resource.",
        "arguments": [{"name": "resourceUri", "required": True}],
    },
    {"name": "test_prompt_with_image", "description": "With an image."},
    {"name": "rounds_prompt", "description": "Asks first."},
]
