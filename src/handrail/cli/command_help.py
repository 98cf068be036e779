"""Help that starts with examples.

Owns how a command is described. Does not know any command.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from typer import Typer
from typer.core import TyperCommand, TyperGroup

Verb = TypeVar("Verb", bound=Callable[..., Any])


class ExamplesFirst(TyperCommand):
    """A command whose epilog is shown first: a person learns from an example, then looks up an option."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _write_examples(self.epilog, formatter)
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Nothing: it has been shown."""


class GroupWithExamples(TyperGroup):
    """The same for a command that has commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _write_examples(self.epilog, formatter)
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Nothing: it has been shown."""


def plain(**settings: Any) -> Typer:
    """A set of commands with plain help and no decorated tracebacks."""
    return Typer(
        cls=GroupWithExamples,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        **settings,
    )


def verb(app: Typer, name: str, *examples: str, **settings: Any) -> Callable[[Verb], Verb]:
    """Make a function the command `name`; its docstring is the description."""
    return app.command(name, cls=ExamplesFirst, epilog="\n".join(examples), **settings)


def _write_examples(examples: str | None, formatter: Any) -> None:
    if examples:
        formatter.write("Examples:\n")
        formatter.write("".join(f"  {line}\n" for line in examples.splitlines()))
        formatter.write("\n")
