"""The text format: exact names, exact types, values that come back as they were."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from nodeagent.metrics.exposition import Labels, exposition
from nodeagent.metrics.instruments import Counter, Instruments


def text_of(*families: Metric) -> str:
    return b"".join(exposition(families)).decode()


def gauge(value: float, labels: dict[str, str]) -> Metric:
    family = Metric("m", "help", "gauge")
    family.add_sample("m", labels, value)
    return family


def test_a_counter_keeps_the_name_that_kubelet_gave_it() -> None:
    counter = Counter("kubelet_evictions", "Pods evicted.", ("eviction_signal",))
    counter.increase("memory.available")
    counter.increase("memory.available")
    counter.increase("pid.available")
    assert text_of(*counter.collect()) == (
        "# HELP kubelet_evictions Pods evicted.\n"
        "# TYPE kubelet_evictions counter\n"
        'kubelet_evictions{eviction_signal="memory.available"} 2\n'
        'kubelet_evictions{eviction_signal="pid.available"} 1\n'
    )


def test_a_counter_without_labels_is_there_from_the_start() -> None:
    assert "\nkubelet_started_pods_total 0\n" in text_of(
        *Counter("kubelet_started_pods_total", "Pods.").collect()
    )


def test_a_label_too_few_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="kubelet_evictions has the labels"):
        Counter("kubelet_evictions", "Pods evicted.", ("eviction_signal",)).increase()


def test_a_histogram_has_kubelet_s_buckets_in_go_s_spelling_and_no_creation_times() -> None:
    instruments = Instruments()
    instruments.pod_worker_duration.labels("sync").observe(0.3)
    lines = text_of(*instruments.pod_worker_duration.collect()).splitlines()
    name = "kubelet_pod_worker_duration_seconds"
    assert lines[1] == f"# TYPE {name} histogram"
    bounds = [line.split('le="')[1].split('"')[0] for line in lines if "_bucket" in line]
    assert bounds == ["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf"]
    assert f'{name}_bucket{{le="0.25",operation_type="sync"}} 0' in lines
    assert f'{name}_bucket{{le="0.5",operation_type="sync"}} 1' in lines
    assert f'{name}_sum{{operation_type="sync"}} 0.3' in lines
    assert not [line for line in lines if "_created" in line]


def test_runtime_operations_have_fourteen_buckets_from_five_milliseconds() -> None:
    instruments = Instruments()
    instruments.runtime_operations_duration.labels("start").observe(1)
    text = text_of(*instruments.runtime_operations_duration.collect())
    assert text.count("_bucket{") == 15
    assert 'le="0.005"' in text and 'le="0.0125"' in text
    assert math.isclose(0.005 * 2.5**13, 745.0580596923828)
    assert 'le="745.0580596923828"' in text


def test_a_time_is_written_in_milliseconds() -> None:
    family = Metric("m", "help", "gauge")
    family.add_sample("m", {}, 7, 1_772_366_400.25)
    assert text_of(family).splitlines()[-1] == "m 7 1772366400250"


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), (2.5, "2.5"), (4.0, "4"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")],
)
def test_values_are_written_as_go_writes_them(value: float, text: str) -> None:
    assert text_of(gauge(value, {})).splitlines()[-1] == f"m {text}"


def test_help_stays_one_line() -> None:
    assert text_of(Metric("m", "one\ntwo \\ three", "gauge")).splitlines()[0] == r"# HELP m one\ntwo \\ three"


@given(
    st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,7}", fullmatch=True), st.text(max_size=20), max_size=4),
    st.floats(allow_nan=False),
)
def test_whatever_is_written_reads_back(labels: dict[str, str], value: float) -> None:
    # The parser splits at every line break that Unicode knows; the format knows only the newline.
    labels = {name: "\n".join(text.splitlines()) for name, text in labels.items()}
    (family,) = text_string_to_metric_families(text_of(gauge(value, Labels(labels))))
    (sample,) = family.samples
    assert sample.labels == labels
    assert sample.value == value


def test_labels_are_sorted_and_written_once() -> None:
    labels = Labels(pod="web", container="main", id='a"b\\c\nd')
    assert labels.text == r'{container="main",id="a\"b\\c\nd",pod="web"}'
    assert labels.text is labels.text
