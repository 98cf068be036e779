"""Plain `--help` output: examples first, then usage, options and commands, within 80 columns."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from typer import Typer
from typer.core import TyperCommand, TyperGroup

Verb = TypeVar("Verb", bound=Callable[..., Any])


class CommandWithExamples(TyperCommand):
    """A command whose help starts with its epilog: people look for an example before they look up an option."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _write_examples(self.epilog, formatter)
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write nothing: `format_help` has written the epilog."""


class GroupWithExamples(TyperGroup):
    """A command with subcommands, in the same style."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _write_examples(self.epilog, formatter)
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write nothing: `format_help` has written the epilog."""


class GroupWithHeadings(GroupWithExamples):
    """A group that lists its commands under headings instead of in one list."""

    headings: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Heading → names of its commands, both in the order shown. Every command must be under exactly one heading."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        column = max(map(len, self.commands))
        limit = formatter.width - column - 6
        for heading, names in self.headings.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(column), self.commands[name].get_short_help_str(limit)) for name in names]
                )


def plain_app(cls: type[GroupWithExamples] = GroupWithExamples, **settings: Any) -> Typer:
    """A Typer app with plain help and plain tracebacks."""
    return Typer(
        cls=cls,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        **settings,
    )


def add_command(app: Typer, name: str, *examples: str, **settings: Any) -> Callable[[Verb], Verb]:
    """Decorator: register a function as the command `name`. Its docstring is the help text."""
    return app.command(name, cls=CommandWithExamples, epilog="\n".join(examples), **settings)


def _write_examples(examples: str | None, formatter: Any) -> None:
    if examples:
        formatter.write("Examples:\n")
        formatter.write("".join(f"  {line}\n" for line in examples.splitlines()))
        formatter.write("\n")
