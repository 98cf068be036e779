"""Long conversations out of nothing, in the shape of an export. Owns only their words, which are always the same."""

import random
from typing import Any

VOCABULARY = [
    "".join(random.Random(n).choices("bcdfghklmnprstvw", k=2))
    + "".join(random.Random(-n - 1).choices("aeiou", k=1)) * (1 + n % 2)
    + f"{n % 97}"
    for n in range(4000)
]


def conversation(title: str, messages: int, words: int = 40) -> dict[str, Any]:
    """A thread to import; its last words are `The end of TITLE.`"""
    chance = random.Random(title)
    said = [
        _message(n, " ".join(chance.choices(VOCABULARY, k=words)) + f" {title} number {n}.")
        for n in range(messages - 1)
    ]
    thread = {"title": title, "agent": "speaker", "created_at": 1, "updated_at": messages}
    return {"handrail": 1, "thread": thread, "messages": [*said, _message(messages, f"The end of {title}.")]}


def _message(n: int, text: str) -> dict[str, Any]:
    return {
        "role": "assistant" if n % 2 else "user",
        "agent": "speaker",
        "opened_at": n + 1,
        "ended_at": n + 1,
        "stop": "end_turn",
        "parts": [{"kind": "text", "text": text}],
    }
