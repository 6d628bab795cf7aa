"""SVG made fit to stand inside the page: known elements and attributes alone, tooltips, links, and few bytes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from outpace.errors import HarnessError

_ELEMENTS = {"svg", "g", "path", "line", "rect", "circle", "text", "tspan"}
_ATTRIBUTES = {
    "d", "x", "y", "x1", "y1", "x2", "y2", "dx", "dy", "r", "cx", "cy", "width", "height", "transform", "viewBox",
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
    "opacity", "text-anchor", "font-size", "font-weight",
}  # fmt: skip
_IDLE = {
    "opacity": "1",
    "fill-opacity": "1",
    "stroke-opacity": "1",
    "stroke-width": "1",
    "font-weight": "normal",
}
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_OF_A_TRIAL = re.compile(r"trial (\d+)\b")


def tidy(drawn: str, *, kind: str) -> str:
    """The picture as an element of the page; a mark that is described as a trial leads to that trial."""
    root = _tidied(ET.fromstring(drawn))
    if root is None or root.tag != "svg":
        raise HarnessError("the drawn picture is no SVG: use the vl-convert-python that outpace[report] asks for")
    for name in ("width", "height"):
        root.attrib.pop(name, None)
    root.set("class", kind)
    return ET.tostring(root, encoding="unicode")


def _tidied(element: ET.Element) -> ET.Element | None:
    name = element.tag.rpartition("}")[2]
    if name not in _ELEMENTS or _unseen(name, element):
        return None
    kept = ET.Element(name, _attributes(element))
    kept.text = element.text if name in ("text", "tspan") else None
    for child in element:
        made = _tidied(child)
        if made is not None:
            kept.append(made)
    if name == "g" and len(kept) == 0:
        return None
    label = element.get("aria-label", "")
    return _described(kept, label) if name in ("path", "rect", "line") and label else kept


def _described(mark: ET.Element, label: str) -> ET.Element:
    title = ET.SubElement(mark, "title")
    title.text = label
    found = _OF_A_TRIAL.match(label)
    if found is None:
        return mark
    link = ET.Element("a", {"href": f"#trial-{found[1]}"})
    link.append(mark)
    return link


def _unseen(name: str, element: ET.Element) -> bool:
    if element.get("opacity") == "0" or element.get("display") == "none":
        return True
    if name == "path" and element.get("class") == "background":
        return element.get("fill") is None and element.get("stroke") is None
    return name == "text" and not "".join(element.itertext())


def _attributes(element: ET.Element) -> dict[str, str]:
    return {
        name: _NUMBER.sub(_shorter, value)
        for name, value in element.attrib.items()
        if name in _ATTRIBUTES and _IDLE.get(name) != value and value != "translate(0,0)"
    }


def _shorter(number: re.Match[str]) -> str:
    # A tenth of a pixel is finer than any screen, and half of a picture's bytes are digits.
    short = f"{float(number[0]):.1f}".removesuffix(".0")
    return "0" if short == "-0" else short
