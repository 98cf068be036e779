"""What axe-core finds on a page, and what does not fit: at two widths, in light, dark and forced colours."""

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal

from playwright.async_api import Page
from tests.house.source import ROOT

AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
"""The rules whose findings depend on colours: in the second and third scheme only these can find anything new."""
WIDTHS = (1440, 360)
Scheme = Literal["light", "dark", "forced"]
SCHEMES: tuple[tuple[Scheme, dict[str, Any]], ...] = (
    ("light", {}),
    ("dark", {"runOnly": COLOURS}),
    ("forced", {"runOnly": COLOURS}),
)
RUN = "options => axe.run(document, { resultTypes: ['violations'], ...options })"
CUT = """() => [...document.querySelectorAll("button")].filter((one) => {
  const box = one.getBoundingClientRect();
  if (!one.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || !box.width || one.closest(".unseen, .xterm, [inert], .chips")) return false;
  const words = [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const cut = words && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).textOverflow !== "ellipsis";
  return cut || (box.right > innerWidth + 1 && box.left < innerWidth);
}).map((one) => one.textContent.trim() || one.ariaLabel)"""
"""Buttons whose words are cut, by the button itself or by the edge of the page. The chips of a filter scroll."""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def serious(found: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """The rules that found something serious or critical, with the elements."""
    violations = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [(one["id"], [node["html"][:300] for node in one["nodes"]]) for one in violations]


async def find_problems(page: Page, state: str, widths: Sequence[int] = WIDTHS) -> list[str]:
    """Check this state of the page; it is left at the last width, in light."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text())
    problems: list[str] = []
    for width, (scheme, options) in product(widths, SCHEMES):
        await page.set_viewport_size({"width": width, "height": 800})
        await show_in(page, scheme)
        found = serious(await page.evaluate(RUN, options))
        over = await page.evaluate(OVERFLOW)
        problems += [f"{state}, {width} px, {scheme}: {rule}: {nodes}" for rule, nodes in found]
        problems += [f"{state}, {width} px: {over} px too wide"] if over else []
        cut: list[str] = await page.evaluate(CUT) if scheme == "light" else []
        problems += [f"{state}, {width} px: cut: {cut}"] if cut else []
    await show_in(page, "light")
    return problems


async def show_in(page: Page, scheme: Scheme) -> None:
    """Without motion, so that no colour is on its way to another."""
    await page.emulate_media(
        color_scheme="dark" if scheme == "dark" else "light",
        forced_colors="active" if scheme == "forced" else "none",
        reduced_motion="reduce",
    )
