"""prometheus-client's metric objects in the text format 0.0.4, under exactly the names that they carry.

The library's own writer appends `_total` to every counter; kubelet has some without (kubelet_evictions).
"""

import math
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_CREATED = "_created"
_LABEL_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})


class Labels(dict[str, str]):
    """The labels of many samples, written out once."""

    __slots__ = ("_text",)
    _text: str

    @property
    def text(self) -> str:
        """The labels in braces, by name."""
        try:
            return self._text
        except AttributeError:
            self._text = _labels_text(self)
            return self._text


def exposition(families: Iterable[Metric]) -> Iterator[bytes]:
    """Write the families one by one, so that a large answer never has to exist as a whole."""
    for family in families:
        yield "".join(_lines(family)).encode()


def _lines(family: Metric) -> Iterator[str]:
    # What is created when is a concept of OpenMetrics; to this format it would be one more gauge a series.
    samples = [sample for sample in family.samples if not sample.name.endswith(_CREATED)]
    name = samples[0].name if family.type == "counter" and samples else family.name
    yield f"# HELP {name} {family.documentation.translate(_HELP_ESCAPES)}\n"
    yield f"# TYPE {name} {'untyped' if family.type == 'unknown' else family.type}\n"
    for sample in samples:
        yield _sample_line(sample)


def _sample_line(sample: Sample) -> str:
    labels = sample.labels
    text = labels.text if isinstance(labels, Labels) else _labels_text(labels)
    if sample.timestamp is None:
        return f"{sample.name}{text} {_number(sample.value)}\n"
    return f"{sample.name}{text} {_number(sample.value)} {int(float(sample.timestamp) * 1000)}\n"


def _labels_text(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    # Go writes a bucket's bound 1.0 as 1.
    pairs = (
        (name, value.removesuffix(".0") if name == "le" else value) for name, value in sorted(labels.items())
    )
    return "{" + ",".join(f'{name}="{value.translate(_LABEL_ESCAPES)}"' for name, value in pairs) + "}"


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value).removesuffix(".0")
