"""Is an object's metadata as the API server would take it? (meta/v1 validation)"""

from nodeagent.api import names
from nodeagent.api.errors import forbidden, required, too_long
from nodeagent.api.meta import ObjectMeta
from nodeagent.api.validation.checks import Errors, each

LARGEST_ANNOTATIONS_BYTES = 256 * 1024


def metadata_errors(meta: ObjectMeta, *, namespaced: bool = True) -> Errors:
    """Check the metadata of any kind whose names are DNS subdomains."""
    if meta.generate_name:
        # A generated suffix follows, so that a trailing dash is right.
        stem = meta.generate_name.removesuffix("-") or meta.generate_name
        yield from each(names.subdomain(stem), "metadata.generateName", meta.generate_name)
    if meta.name:
        yield from each(names.subdomain(meta.name), "metadata.name", meta.name)
    elif not meta.generate_name:
        yield required("metadata.name", "name or generateName is required")
    if namespaced:
        if not meta.namespace:
            yield required("metadata.namespace")
        else:
            yield from each(names.label(meta.namespace), "metadata.namespace", meta.namespace)
    elif meta.namespace:
        yield forbidden("metadata.namespace", "not allowed on this type")
    for key, value in meta.labels.items():
        yield from each(names.qualified_name(key), "metadata.labels", key)
        yield from each(names.label_value(value), "metadata.labels", value)
    size = 0
    for key, value in meta.annotations.items():
        # As in the original, upper case is let through in the prefix of an annotation.
        yield from each(names.qualified_name(key.lower()), "metadata.annotations", key)
        size += len(key.encode()) + len(value.encode())
    if size > LARGEST_ANNOTATIONS_BYTES:
        yield too_long("metadata.annotations", "", LARGEST_ANNOTATIONS_BYTES)
