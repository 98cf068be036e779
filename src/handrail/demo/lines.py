"""What the demo's agent says. Only words: who speaks them, and when, is mind.py's."""

HELLO = """Hello! I am Handrail's **demo agent**. I need no key and know nothing; I am here so that you can see how
conversations with agents work. Say one of these words:

| say | and I |
|---|---|
| `edit` | write a file: you see the diff here and in the inbox, keep or reject its hunks, or deny it |
| `run` | run a command in a terminal that you can watch, cancel or complete |
| `ask` | ask leave for something that I would do by myself |
| `plan` | make a plan and go through it |
| `long` | talk for a while, so that you can stop me |
| `hang` | do nothing at all until you stop me |
| `break` | crash in the middle of a word; say something again afterwards |

Real agents join by `handrail agents`, which says what is installed and how to install the rest.
"""
EDIT = (
    "I will write down what we talk about. You are asked first: the file is written only as you leave it.\n\n"
)
EDITED = "Written. `handrail undo` takes it back, and so does the call's own page.\n"
RUN = "Let me count to five, slowly; the terminal is yours, too.\n\n"
ASK = "Some agents do things by themselves and only ask first. Handrail shows that as *advisory*: it is their word.\n\n"
MAY = "You said yes. I would do it now, and Handrail could not see how; so I do nothing.\n"
MAY_NOT = "You said no, so I leave it. I can live with that.\n"
PLAN = ("Look around", "Think about it", "Say what I found")
FOUND = "That was my plan, done step by step. It stays above, folded, in this conversation.\n"
THOUGHT = (
    "The person wants to see something. I have no model, so I look for a word that I know in what they said."
)
LONG = """### A long answer

Handrail keeps what an agent says *as it comes*: if everything went down right now, you would find this text again up to
the last fifth of a second, and the next prompt would go on from here.

```python
def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a
```

"""
VERSE = "Paragraph {n}: press **Stop** whenever you have seen enough; what was said until then stays.\n\n"
HANG = "I am doing nothing now, on purpose. Press **Stop** (or `Esc` twice): you get your conversation back at once.\n"
BREAK = "I am about to fall over in the middle of a sent"
LAST_WORDS = "demo agent: I was told to break, so I do.\n"
REFUSED = "I could not: {why}\n"
NOTE = "# Notes of the demo agent\n\nWritten because somebody said “edit”, line {n}.\n"
