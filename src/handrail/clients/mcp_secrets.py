"""Credentials in a client's configuration: which values of an MCP server go to the secret store, and which are not shown.

Nothing tells a credential from another value for certain. So a value stays in config.toml only if it is obviously none: a
number, a word, a path, or an address without a query, under a name that does not suggest a credential.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from handrail.clients.config_edit import BadFile, is_list, is_object, load
from handrail.lazy_dataclass import dataclass

_CREDENTIAL_NAME = re.compile(
    r"token|secret|passw|passphrase|credential|private|auth|cookie|session|bearer|signature|jwt"
    r"|(?:^|[_-])(?:key|keys|pat|pass|pw|pwd|dsn|sid|apikey)(?:$|[_-])|key$",
    re.IGNORECASE,
)
_WORD = r"[A-Za-z]+(?:[._-](?:[A-Za-z]+|\d{1,4}))*"
_PLAIN = re.compile(
    rf"(?:|[+-]?\d{{1,9}}(?:\.\d{{1,6}})?|(?=.{{1,32}}$){_WORD}"
    rf"|~?/(?:[\w.@+ -]{{1,40}}(?:/|$))*|\.{{1,2}}(?:/[\w.@+ -]{{1,40}})*/?"
    rf"|https?://[\w.-]+(?::\d+)?(?:/(?:{_WORD}|v\d{{1,2}}))*/?)"
)
_SCHEME = re.compile(r"(Bearer|Basic|Token|token) +(\S.*)")
_TOKEN = re.compile(
    r"(?:^|[=:/])(?:sk-|sk_|gh[opsu]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|npm_|hf_|eyJ[\w-]{10,}\.)[\w.-]{8,}"
)
_USER_IN_URL = re.compile(r"\w+://[^/\s@:]*:[^/\s@]+@")
_FLAG = re.compile(
    r"--?(?:[\w-]*-)?(?:api-?key|access-?key|token|password|passwd|secret|credentials?|dsn)(=.+)?$",
    re.IGNORECASE,
)
_QUERY = re.compile(
    r"[?&](?:[\w-]*[_-])?(?:api_?key|key|token|secret|password|auth|sig(?:nature)?)=[^&]", re.IGNORECASE
)
_TABLES = frozenset({"env", "envs", "environment", "headers", "http_headers"})
"""Objects whose members have names that the user chose."""
_PAIR = re.compile(
    r"""(?<![\w.-])["']?([A-Za-z_][\w.-]*)["']?[ \t]*[:=][ \t]*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([^\s,;"'{}\[\]]+))"""
)
_NO_SECRET = re.compile(r"|true|false|null|[\d.]+|~?\.{0,2}/.*|[{$].*", re.DOTALL)
"""Switches, numbers, paths, placeholders."""
_REFERENCE = re.compile(r"\{secret:\w+\}")
VALUE_MAX = 65_536
"""Characters of a value, as the secret store takes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSection:
    """An entry of `[[servers]]` with references to secrets, and their values."""

    section: Mapping[str, Any]
    secrets: Mapping[str, str]
    """Values by the name of the secret."""
    problem: str = ""
    """Why the entry cannot be written without a credential in it."""


def split_secrets(
    section: Mapping[str, Any], taken: Collection[str], *, keeps_references: bool = False
) -> SplitSection:
    """Replace credentials by references. The secrets get names that are not in `taken`.

    `keeps_references`: a person wrote the entry. In a file of somebody else's, `{secret:NAME}` must not name a secret.
    """
    problem = _find_exposed(section)
    changed, values = dict(section), dict[str, str]()
    passed: list[str] = []
    for field in ("env", "headers"):
        kept: dict[str, str] = {}
        for name, value in section.get(field, {}).items():
            if is_plain(name, value) or (keeps_references and _REFERENCE.search(value)):
                kept[name] = value
                continue
            scheme, secret_value = _split_scheme(value) if field == "headers" else ("", value)
            if len(secret_value) > VALUE_MAX or not secret_value.isprintable():
                problem = (
                    problem or f"{name} has several lines or control characters, which a secret cannot have."
                )
            longer = f"{section['name']}_{name}".upper()
            secret = _find_name([name, longer] if field == "env" else [longer], {*taken, *values})
            values[secret] = secret_value
            if field == "env" and secret == name:
                passed.append(name)
            else:
                kept[name] = f"{scheme}{{secret:{secret}}}"
        changed.pop(field, None)
        changed |= {field: kept} if kept else {}
    changed |= {"secrets": [*section.get("secrets", ()), *passed]} if passed else {}
    return SplitSection(section=changed, secrets=values, problem=problem)


def is_plain(name: str, value: str) -> bool:
    """Whether a value of `env` or `headers` is obviously no credential."""
    if value in ("", "true", "false", "0", "1"):
        return True
    return not _CREDENTIAL_NAME.search(name) and _PLAIN.fullmatch(value) is not None


def find_credentials(value: Any, name: str = "", table: str = "") -> Iterator[str]:
    """The values in a client's configuration, or in a part of it, that are not shown."""
    if is_object(value):
        for key, each in value.items():
            yield from find_credentials(each, key, name)
    elif is_list(value):
        yield from _find_in_words([str(each) for each in value if isinstance(each, str)])
        for each in value:
            yield from find_credentials(each, name)
    elif table in _TABLES and not is_plain(name, str(value)):
        yield str(value)
    elif isinstance(value, str) and _is_credential(name, value):
        yield value


def _find_in_words(words: Sequence[str]) -> Iterator[str]:
    """What follows the flags of a command that take a credential."""
    for word, following in zip(words, [*words, "-"][1:], strict=True):
        flag = _FLAG.match(word)
        if flag and flag[1]:
            yield flag[1][1:]
        elif flag and not following.startswith("-"):
            yield following


def find_file_credentials(suffix: str, text: str) -> set[str]:
    """The values in a configuration file, and in its comments, that are not shown."""
    values = set(_find_in_text(text))
    if suffix in (".json", ".jsonc", ".toml"):
        with suppress(BadFile):
            values |= {*find_credentials(load("toml" if suffix == ".toml" else "json", text))}
    return values


def _find_in_text(text: str) -> Iterator[str]:
    """The values of `NAME: value` and `NAME = value`, whatever the format."""
    for name, quoted, single, bare in _PAIR.findall(text):
        value = quoted or single or bare
        is_variable = name.isupper() and not is_plain(name, value)
        if is_variable or _is_credential(name, value):
            yield value


def _is_credential(name: str, value: str) -> bool:
    if any(pattern.search(value) for pattern in (_TOKEN, _USER_IN_URL, _QUERY)):
        return True
    return _CREDENTIAL_NAME.search(name) is not None and _NO_SECRET.fullmatch(value) is None


def _split_scheme(value: str) -> tuple[str, str]:
    """`Bearer abc` → `Bearer ` and `abc`."""
    match = _SCHEME.fullmatch(value)
    return (f"{match[1]} ", match[2]) if match else ("", value)


def _find_name(wished: Sequence[str], taken: Collection[str]) -> str:
    """The first of the names that is free, else the last with a number."""
    names = [re.sub(r"^(?=\d)|\W", "_", each, flags=re.ASCII)[:90] for each in wished]
    numbered = (f"{names[-1]}_{number}" for number in range(2, 10_000))
    return next(each for each in (*names, *numbered) if each not in taken)


def _find_exposed(section: Mapping[str, Any]) -> str:
    """What looks like a credential where no reference to a secret can stand; empty if nothing does."""
    words: Sequence[str] = section.get("command", ())
    for at, word in enumerate(words):
        flag = _FLAG.match(word) if at else None
        follows = at + 1 < len(words) and not words[at + 1].startswith("-")
        if (
            (flag and (flag[1] or follows))
            or _TOKEN.search(word)
            or _USER_IN_URL.search(word)
            or _QUERY.search(word)
        ):
            shown = word.split("=")[0] if flag else f"argument {at}"
            return (
                f"its command seems to contain a credential ({shown}), which config.toml should not. If the server reads it "
                "from a variable, move it to the entry's `env` first."
            )
    url = section.get("url", "")
    if _QUERY.search(url) or _TOKEN.search(url):
        return (
            "its URL seems to contain a credential, which config.toml should not. If the server takes a header, move it "
            "there first."
        )
    return ""
