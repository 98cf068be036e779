"""Real shells tell their commands apart, whatever is in the user's files, and those files notice nothing."""

import os
import time
from pathlib import Path

import pytest
from tests.support.integrated_shell import NONCE, SCRIPTS, integrated_shell

from handrail.terminal.open_shell import integrate

pytestmark = pytest.mark.anyio
each_shell = pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])


# What every shell tells


@each_shell
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("true", 0),
        ("false", 1),
        ("sh -c 'exit 7'", 7),
        ("sh -c 'kill -TERM $$'", 143),
        ("no-such-program", 127),
    ],
)
async def test_each_command_has_its_exit_code(home: Path, shell: str, line: str, code: int) -> None:
    async with integrated_shell(home, shell) as it:
        command = await it.run(line)
        assert (command.line, command.exit_code) == (line, code)
        assert (await it.run("true")).exit_code == 0


@each_shell
async def test_the_output_of_a_command_is_what_it_printed_and_no_more(home: Path, shell: str) -> None:
    async with integrated_shell(home, shell) as it:
        assert it.output(await it.run("printf 'one\\ntwo\\n'")) == b"one\r\ntwo\r\n"
        assert it.output(await it.run("printf dangling")) == b"dangling"
        assert it.output(await it.run("true")) == b""
        assert it.output(await it.run("printf '\\033[31mred\\033[0m\\n'")) == b"\x1b[31mred\x1b[0m\r\n"
        assert it.output(await it.run("seq 1 20000")) == b"".join(b"%d\r\n" % n for n in range(1, 20001))


@each_shell
async def test_where_a_shell_stands_is_known_after_each_cd(home: Path, shell: str) -> None:
    names = ["with space", "über-ж-日本", "semi;colon", "back\\slash"]
    async with integrated_shell(home, shell) as it:
        for name in names:
            (it.home / name).mkdir()
            command = await it.run(
                f"cd '{it.home}/{name.replace(chr(92), chr(92) * (2 if shell == 'fish' else 1))}'"
            )
            assert (command.exit_code, it.marks.cwd) == (0, f"{it.home}/{name}")
        assert (await it.run("true")).cwd == f"{it.home}/{names[-1]}"
        assert it.marks.commands[0].cwd == str(it.home)


@each_shell
async def test_how_long_a_command_ran_and_when_it_began_is_known(home: Path, shell: str) -> None:
    async with integrated_shell(home, shell) as it:
        before = time.time()
        command = await it.run("sleep 0.3")
        assert command.duration_ms is not None
        assert 300 <= command.duration_ms < 5000
        assert command.started_at is not None
        assert before - 1 <= command.started_at <= time.time()


@each_shell
@pytest.mark.parametrize(
    "line",
    [
        "echo a; echo b",
        "echo 'back\\slash and \\x41 & more'",
        "echo 'grüße ж 日本'",
        "echo \"'\" '$HOME' '%d %s'",
        "echo " + "long " * 100 + "end",
    ],
)
async def test_a_line_is_told_as_it_was_typed(home: Path, shell: str, line: str) -> None:
    async with integrated_shell(home, shell) as it:
        await it.run("true")
        assert (await it.run(line)).line == line


@pytest.mark.parametrize("shell", ["bash", "zsh"])
async def test_a_very_long_line_is_told_cut_and_says_so(home: Path, shell: str) -> None:
    async with integrated_shell(home, shell) as it:
        await it.run("true")
        line = (await it.run(f"true {'x' * 20000}")).line
        assert line == f"true {'x' * (16384 - 5)}…"


@each_shell
async def test_a_line_over_several_lines_is_one_command(home: Path, shell: str) -> None:
    lines = {
        "fish": "for n in 1 2\recho n$n\rend",
        "bash": "for n in 1 2\rdo echo n$n\rdone",
        "zsh": "for n in 1 2\rdo echo n$n\rdone",
    }
    async with integrated_shell(home, shell) as it:
        await it.run("true")
        command = await it.run(lines[shell])
        assert it.output(command) == b"n1\r\nn2\r\n"
        assert command.line is not None
        assert command.line.startswith("for n in 1 2")
        assert command.line.endswith(("end", "done"))
        assert len(it.marks.commands) == 2


@pytest.mark.parametrize("shell", ["bash", "zsh"])
async def test_a_here_document_belongs_to_its_command(home: Path, shell: str) -> None:
    async with integrated_shell(home, shell) as it:
        await it.run("true")
        command = await it.run("cat <<X\rone; two\rX")
        assert (command.line, it.output(command)) == ("cat <<X\none; two\nX", b"one; two\r\n")


@each_shell
async def test_an_empty_line_and_a_line_given_up_are_no_commands(home: Path, shell: str) -> None:
    async with integrated_shell(home, shell) as it:
        await it.run("sh -c 'exit 3'")
        at = it.marks.prompt_at
        await it.type("\r")
        await it.prompt(after=at)
        at, end = it.marks.prompt_at, it.tail.end
        await it.type("n")
        await it.until(b"n", end)
        await it.rest()
        end = it.tail.end
        await it.type("\x03")
        if shell == "fish":  # which marks nothing of a line given up, but draws its prompt anew
            await it.until(b"^C", end)
            await it.until(b"# " if os.getuid() == 0 else b"> ", end + it.shown[end:].index(b"^C"))
        else:
            await it.prompt(after=at)
        command = await it.run("echo next")
        assert [each.line for each in it.marks.commands] == ["sh -c 'exit 3'", "echo next"]
        assert (command.exit_code, it.output(command)) == (0, b"next\r\n")


@each_shell
async def test_an_interrupted_command_ends_with_the_signal(home: Path, shell: str) -> None:
    async with integrated_shell(home, shell) as it:
        await it.prompt()
        await it.type("sh -c 'echo re''ady; exec sleep 1000'\r")
        await it.until(b"ready\r\n")
        it.reader.catch_up(it.tail)
        assert it.marks.running is not None
        assert it.marks.at_prompt is False
        await it.type("\x03")
        await it.prompt(after=it.marks.running.output)
        assert it.marks.commands[-1].exit_code == 130


@each_shell
async def test_forged_marks_are_not_believed(home: Path, shell: str) -> None:
    forged = (
        r"\033]133;D;0\007\033]133;A\007\033]133;C\007\033]633;E;rm -rf;\007"
        r"\033]133;D;0;nonce=0000000000000000;id=1\033\\\033]633;P;Cwd=/forged;0000000000000000\007\033]133;D"
    )
    async with integrated_shell(home, shell) as it:
        (it.home / "forge").write_text(f"printf '{forged}'; exit 9\n")
        command = await it.run("sh forge")
        assert (command.line, command.exit_code, it.marks.cwd) == ("sh forge", 9, str(it.home))
        assert len(it.marks.commands) == 1
        assert it.output(command).endswith(b"\x1b]133;D")


@each_shell
async def test_nothing_of_ours_reaches_what_the_shell_starts(home: Path, shell: str) -> None:
    async with integrated_shell(home, shell) as it:
        assert await it.told("env | grep -i -e handrail -e ZDOTDIR -e ^ENV= -e " + NONCE) == ""
        assert await it.told("sh -c 'echo $0'") == "sh"


@each_shell
async def test_a_shell_inside_the_shell_writes_no_marks(home: Path, shell: str) -> None:
    async with integrated_shell(home, shell) as it:
        await it.prompt()
        await it.type(f"exec {shell}\r")
        await it.until(b"exec")
        while it.marks.running is None:
            await it.more()
        begun = it.tail.end
        await it.type("echo in$((40 + 2))side\r" if shell != "fish" else "echo in(math 40 + 2)side\r")
        await it.until(b"in42side", begun)
        it.reader.catch_up(it.tail)
        assert it.marks.at_prompt is False
        assert [each.line for each in it.marks.commands] == [f"exec {shell}"]
        assert NONCE.encode() not in it.shown[it.marks.commands[0].output :]


@each_shell
async def test_a_subshell_in_parentheses_is_one_command(home: Path, shell: str) -> None:
    line = "fish -c 'echo in; exit 4'" if shell == "fish" else "(echo in; exit 4)"
    async with integrated_shell(home, shell) as it:
        command = await it.run(line)
        assert (command.exit_code, it.output(command)) == (4, b"in\r\n")
        assert len(it.marks.commands) == 1


# bash and the user's files

HABITS: dict[str, str] = {
    "a prompt command": "PROMPT_COMMAND='seen=$?; ran=yes'",
    "prompt commands": "PROMPT_COMMAND=('seen=$?' 'ran=yes')",
    "a comment at its end": "PROMPT_COMMAND='seen=$?; ran=yes # all'",
    "a prompt made anew each time": "PROMPT_COMMAND='seen=$?; ran=yes; PS1=\"[$seen] \"'",
    "output of its own": "PROMPT_COMMAND='seen=$?; ran=yes; echo from-the-prompt'",
    "set -u": "set -u; PROMPT_COMMAND='seen=$?; ran=yes'",
    "set -e": "set -e; PROMPT_COMMAND='seen=$?; ran=yes'; [[ -f /no/such ]] && echo",
    "set -a": "set -a; PROMPT_COMMAND='seen=$?; ran=yes'",
    "set -x": "set -x; PROMPT_COMMAND='seen=$?; ran=yes'",
    "a PS0": "PS0='{started}'; PROMPT_COMMAND='seen=$?; ran=yes'",
    "an exported PS1": "export PS1='mine> '; PROMPT_COMMAND='seen=$?; ran=yes'",
    "no prompt variables": "shopt -u promptvars; PROMPT_COMMAND='seen=$?; ran=yes'",
    "odd options": "shopt -s nocasematch nullglob extglob; IFS=x; PROMPT_COMMAND='seen=$?; ran=yes'",
    "builtins taken": "printf() { command printf '%s' taken; }; local() { :; }; alias history=false builtin=false; PROMPT_COMMAND='seen=$?; ran=yes'",
    "an early return": "PROMPT_COMMAND='seen=$?; ran=yes'; return 3",
}


@pytest.mark.parametrize("habit", HABITS)
async def test_the_habits_of_a_bashrc_keep_working(home: Path, habit: str) -> None:
    async with integrated_shell(home, "bash", files={".bashrc": HABITS[habit] + "\n"}) as it:
        failing = "! true" if habit == "set -e" else "sh -c 'exit 7'"
        code = 1 if habit == "set -e" else 7
        assert (await it.run(failing)).exit_code == code
        told = await it.run("echo $? $seen $ran")
        assert it.output(told).replace(b"+ echo", b"").strip().endswith(b"%d %d yes" % (code, code))
        assert it.output(await it.run("echo plain")).endswith(b"plain\r\n")
        assert it.marks.commands[-1].exit_code == 0
        if habit != "set -x":
            assert it.output(it.marks.commands[-1]) == b"plain\r\n"
        leaked = await it.told(f"env | grep -e __handrail -e {NONCE} | grep -v ^PS1=mine || true")
        assert [line for line in leaked.splitlines() if not line.startswith("+")] == []


async def test_what_bash_keeps_for_the_next_line_is_kept(home: Path) -> None:
    rc = "PROMPT_COMMAND='codes=(\"${PIPESTATUS[@]}\")'\n"
    async with integrated_shell(home, "bash", files={".bashrc": rc}) as it:
        await it.run("false | sh -c 'exit 5' | true")
        assert await it.told("echo ${PIPESTATUS[@]} and ${codes[@]}") == "1 5 0 and 1 5 0"
        await it.run("echo last-word")
        assert await it.told('echo "$_"') == "last-word"
        await it.run("sh -c 'exit 6'")
        assert await it.told("echo $?") == "6"


async def test_a_users_debug_trap_sees_the_users_commands_and_keeps_its_place(home: Path) -> None:
    # The well-known way to time commands: what comes first after the prompt command is the user's.
    rc = """
        began() { [ -n "$at_prompt" ] || return; unset at_prompt; echo "$BASH_COMMAND" >>~/began; }
        trap began DEBUG
        PROMPT_COMMAND='at_prompt=1'
    """
    async with integrated_shell(home, "bash", files={".bashrc": rc}) as it:
        await it.run("true one")
        await it.run("true two")
        assert (it.home / "began").read_text().splitlines() == ["true one", "true two"]
        assert (await it.run("sh -c 'exit 7'")).exit_code == 7


async def test_a_bash_prompt_set_anew_or_added_to_later_is_still_marked(home: Path) -> None:
    async with integrated_shell(home, "bash") as it:
        for line in (
            "PS1='new> '; PS0='{started}'",
            "PROMPT_COMMAND='echo from-the-prompt'",
            "PROMPT_COMMAND+=('ran=yes')",
            'PROMPT_COMMAND="ran=yes; $PROMPT_COMMAND"',
            'PS1="(venv) $PS1"',
        ):
            await it.run(line)
            await it.run("true")  # from the next prompt on all is in place again
            command = await it.run("sh -c 'echo out; exit 7'")
            assert (command.exit_code, it.output(command)) == (7, b"out\r\n")
        assert await it.told("echo $ran") == "yes"
        assert it.shown.count(b"(venv) new> ") >= 2


async def test_a_line_that_bash_is_not_to_remember_is_known_as_it_was_shown(home: Path) -> None:
    rc = "HISTCONTROL=ignoreboth\n"
    async with integrated_shell(home, "bash", files={".bashrc": rc}) as it:
        assert (await it.run("echo one")).line == "echo one"
        assert (await it.run("echo one")).line == "echo one"
        assert (await it.run(" echo two")).line == "echo two"
        await it.type("\x1b[A")
        await it.until(b"echo one", it.marks.prompt_at)
        command = await it.run("")
        assert command.line == "echo one"
        assert "two" not in await it.told("history")


async def test_prompts_of_bash_are_as_wide_as_they_look(home: Path) -> None:
    rc = "PS1='12345> '\nunset PROMPT_COMMAND\n"
    async with integrated_shell(home, "bash", files={".bashrc": rc}, size=(20, 10)) as it:
        await it.prompt()
        await it.type(
            "echo abcdefghijklmnopqrstuvwxyz\x01"
        )  # and to the beginning of the line, a row further up
        await it.until(b"\x1b[A\r" + b"\x1b[C" * len("12345> "))


LOGIN = {
    ".bash_profile": "echo profile; from_profile=1; . ~/.bashrc\n",
    ".bashrc": "echo rc\n",
    ".profile": "echo wrong\n",
    ".bash_logout": "echo out >~/left\n",
}


@pytest.mark.parametrize("option", ["-l", "--login", "-il"])
async def test_a_login_bash_reads_the_files_of_a_login_bash_and_is_one(home: Path, option: str) -> None:
    async with integrated_shell(home, "bash", option, files=LOGIN) as it:
        await it.prompt()
        said = it.shown[: it.marks.prompt_at]
        assert (said.count(b"profile\r\n"), said.count(b"rc\r\n"), said.count(b"wrong")) == (1, 1, 0)
        assert await it.told("echo $from_profile $HISTFILE; shopt -q login_shell && echo login") == (
            f"1 {it.home}/.bash_history\nlogin"
        )
        await it.type("logout\r")
        await it.terminal.wait()
        assert (it.home / "left").exists()


@pytest.mark.parametrize("options", [(), ("-l",), ("--norc",), ("--noprofile", "-l")])
async def test_a_marked_bash_has_the_options_of_an_unmarked_one(home: Path, options: tuple[str, ...]) -> None:
    async with integrated_shell(home, "bash", *options, env={"ENV": "/their/own"}) as it:
        await it.run("shopt >a; set -o >>a; echo $ENV ${POSIXLY_CORRECT-none} >>a; alias >>a; trap >>a")
        await it.prompt()
        await it.type(f"exec $BASH {' '.join(options)}\r")
        await it.type(
            "shopt >b; set -o >>b; echo $ENV ${POSIXLY_CORRECT-none} >>b; alias >>b; trap >>b; echo do''ne\r"
        )
        await it.until(b"done\r\n")
        assert (it.home / "a").read_text() == (it.home / "b").read_text()


async def test_a_bash_told_to_read_another_file_or_none_does(home: Path) -> None:
    files = {".bashrc": "echo wrong\n", "other": "echo right\n", ".bash_profile": "echo wrong\n"}
    async with integrated_shell(home, "bash", "--rcfile", str(home / "h" / "other"), files=files) as it:
        await it.prompt()
        assert b"right" in it.shown
        assert b"wrong" not in it.shown


@pytest.mark.parametrize("options", [("--norc",), ("--noprofile", "--login"), ("--norc", "--noprofile")])
async def test_a_bash_told_to_read_no_files_reads_none(home: Path, options: tuple[str, ...]) -> None:
    files = {".bashrc": "echo wrong\n", ".bash_profile": "echo wrong\n", ".profile": "echo wrong\n"}
    async with integrated_shell(home, "bash", *options, files=files) as it:
        assert (await it.run("sh -c 'exit 7'")).exit_code == 7
        assert b"wrong" not in it.shown


async def test_a_failing_last_line_of_a_bashrc_with_set_e_ends_nothing(home: Path) -> None:
    async with integrated_shell(home, "bash", files={".bashrc": "set -e\n[[ -f /no/such ]] && echo\n"}) as it:
        assert await it.told("echo alive $-") != ""
        await it.type("false\r")
        await it.terminal.wait()  # which is what set -e means


# zsh and the user's files


async def test_zsh_reads_all_of_the_users_files_in_their_order(home: Path) -> None:
    files = {
        name: f"print {name} ${{ZDOTDIR-unset}}\n" for name in (".zshenv", ".zprofile", ".zshrc", ".zlogin")
    }
    async with integrated_shell(home, "zsh", "-l", files=files) as it:
        await it.prompt()
        said = [line for line in it.shown.decode().split("\r\n") if line.startswith(".z")]
        assert said == [f"{name} unset" for name in files]
        assert await it.told("zsh -ic 'echo $ZDOTDIR,$precmd_functions'") == ".zshenv unset\n.zshrc unset\n,"


async def test_zsh_goes_where_the_users_zdotdir_leads(home: Path) -> None:
    files = {
        ".zshenv": "print wrong\n",
        "first/.zshenv": "print first; ZDOTDIR=$HOME/second\n",
        "second/.zshrc": "print second\n",
    }
    async with integrated_shell(home, "zsh", files=files, env={"ZDOTDIR": str(home / "h" / "first")}) as it:
        await it.prompt()
        assert b"first\r\nsecond\r\n" in it.shown
        assert b"wrong" not in it.shown
        assert await it.told("echo $ZDOTDIR") == f"{it.home}/second"


ZSH_HABITS: dict[str, str] = {
    "hooks": "precmd_functions+=(mine); preexec_functions+=(theirs)",
    "hooks set anew": "precmd_functions=(mine); preexec_functions+=(theirs)",
    "functions": 'precmd() { mine }; preexec() { theirs "$1" }',
    "a prompt made anew each time": "precmd() { mine; PROMPT='new> ' }; preexec() { theirs \"$1\" }",
    "a prompt that is expanded": "setopt prompt_subst; PROMPT='$seen> '; precmd() { mine }; preexec() { theirs \"$1\" }",
    "no percents": 'unsetopt prompt_percent; precmd() { mine }; preexec() { theirs "$1" }',
    "no new line of its own": 'unsetopt prompt_sp; precmd() { mine }; preexec() { theirs "$1" }',
    "an end-of-line mark": "PROMPT_EOL_MARK='|'; precmd() { mine }; preexec() { theirs \"$1\" }",
    "set -u": 'setopt nounset; precmd() { mine }; preexec() { theirs "$1" }',
    "set -a": 'setopt all_export; precmd() { mine }; preexec() { theirs "$1" }',
    "sh arrays": 'setopt ksh_arrays sh_word_split; precmd() { mine }; preexec() { theirs "$1" }',
    "odd options": 'setopt extended_glob null_glob no_match csh_junkie_quotes; precmd() { mine }; preexec() { theirs "$1" }',
    "builtins taken": 'print() { echo taken }; alias local=false emulate=false; precmd() { mine }; preexec() { theirs "$1" }',
}


@pytest.mark.parametrize("habit", ZSH_HABITS)
async def test_the_habits_of_a_zshrc_keep_working(home: Path, habit: str) -> None:
    rc = f"PS1='ready> '; mine() {{ seen=$? }}; theirs() {{ line=$1 }}\n{ZSH_HABITS[habit]}\n"
    async with integrated_shell(home, "zsh", files={".zshrc": rc}) as it:
        if habit == "hooks set anew":
            await it.until(b"ready> ")
            await it.type("true\r")
        assert (await it.run("sh -c 'exit 7'")).exit_code == 7
        assert await it.told("echo $? $seen $line") == "7 7 echo $? $seen $line"
        assert it.output(await it.run("printf dangling")) == b"dangling"
        assert NONCE not in await it.told("env")
        assert (
            await it.told("echo ${PROMPT_EOL_MARK-unset} >/dev/null; echo $PROMPT | grep -c B.nonce") == "0"
        )


async def test_what_zsh_keeps_for_the_next_line_is_kept(home: Path) -> None:
    async with integrated_shell(home, "zsh") as it:
        await it.run("false | sh -c 'exit 5' | true")
        assert await it.told("echo $pipestatus") == "1 5 0"
        await it.run("echo last-word")
        assert await it.told('echo "$_"') == "last-word"
        await it.run("sh -c 'exit 6'")
        assert await it.told("echo $?") == "6"
        await it.run("PROMPT_EOL_MARK=theirs")
        await it.run("printf dangling")
        assert b"theirs" in it.shown[it.marks.commands[-1].end :]


# fish and the user's files


async def test_fish_reads_its_config_and_keeps_the_users_functions(home: Path) -> None:
    files = {
        ".config/fish/config.fish": "echo from-config; set -g fish_greeting\nfunction mine --on-event fish_postexec; set -g seen $status; end\n",
        ".config/fish/functions/fish_prompt.fish": "function fish_prompt; echo 'theirs> '; end\n",
    }
    async with integrated_shell(home, "fish", files=files) as it:
        await it.prompt()
        assert b"from-config" in it.shown
        await it.run("sh -c 'exit 7'")
        assert await it.told("echo $status $seen") == "7 7"
        assert "__handrail" not in await it.told("functions fish_prompt; functions mine")
        await it.run("false | true")
        assert await it.told("echo $pipestatus") == "1 0"


# Which programs


@pytest.mark.parametrize(
    "argv",
    [
        ("bash", "-c", "ls"),
        ("bash", "script.sh"),
        ("bash", "-ic", "ls"),
        ("bash", "-s"),
        ("bash", "--posix"),
        ("bash", "-r"),
        ("bash", "-"),
        ("bash", "--rcfile"),
        ("zsh", "-f"),
        ("zsh", "-c", "ls"),
        ("zsh", "script"),
        ("zsh", "-o", "norcs"),
        ("fish", "-c", "ls"),
        ("fish", "script"),
        ("fish", "--version"),
        ("sh",),
        ("python3",),
        ("/usr/bin/vim", "bash"),
        (),
    ],
)
def test_what_is_no_interactive_shell_of_these_three_is_left_alone(argv: tuple[str, ...]) -> None:
    assert integrate(argv, {}, NONCE, SCRIPTS) is None


@pytest.mark.parametrize(
    "argv",
    [
        ("bash",),
        ("/bin/bash", "-i"),
        ("bash", "-o", "vi", "+O", "extglob"),
        ("bash", "-login"),
        ("zsh", "-il"),
        ("zsh", "--login"),
        ("fish", "-l"),
        ("fish", "-C", "set -g x 1"),
        ("fish", "--private", "-i"),
    ],
)
def test_the_callers_environment_is_not_changed(argv: tuple[str, ...]) -> None:
    env = {"HOME": "/", "ENV": "/x", "ZDOTDIR": "/z"}
    found = integrate(argv, env, NONCE, SCRIPTS)
    assert found is not None
    assert found[0][0] == argv[0]
    assert found[1]["HANDRAIL_NONCE"] == NONCE
    assert env == {"HOME": "/", "ENV": "/x", "ZDOTDIR": "/z"}


def test_every_script_is_in_the_package() -> None:
    scripts = [path for path in SCRIPTS.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    assert sorted(path.relative_to(SCRIPTS).as_posix() for path in scripts) == [
        "bash.sh",
        "fish.fish",
        "zsh/.zshenv",
    ]
