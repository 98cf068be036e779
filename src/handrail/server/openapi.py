"""Print the OpenAPI document, from which the page's types are generated: `python -m handrail.server.openapi`."""

import json
import sys
from typing import Any, cast

from handrail.server.api_app import build_api
from handrail.server.context import ServerContext


def describe() -> dict[str, Any]:
    """Build the OpenAPI document. Needs no running daemon."""
    return build_api(cast("ServerContext", None)).openapi()


if __name__ == "__main__":
    json.dump(describe(), sys.stdout, indent=2, sort_keys=True)
