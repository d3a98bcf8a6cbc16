"""Are a pod's volumes, and the places where they are mounted, as the API server would take them?"""

from collections.abc import Iterable, Mapping

from msgspec.structs import fields

from nodeagent.api import names
from nodeagent.api.errors import duplicate, forbidden, invalid, not_found, required
from nodeagent.api.pod import (
    DownwardAPIVolumeFile,
    HostPathVolumeSource,
    KeyToPath,
    ProjectedVolumeSource,
    Volume,
    VolumeMount,
)
from nodeagent.api.validation.checks import Errors, descending_path_errors, each, no_backsteps, no_nul, one_of
from nodeagent.api.validation.environment import field_selector_errors, resource_selector_errors

HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
FILE_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
LARGEST_MODE = 0o777
_SOURCES = {field.name: field.encode_name for field in fields(Volume) if field.name != "name"}


def volumes_errors(volumes: Iterable[Volume], path: str) -> Errors:
    """Check the volumes of a pod."""
    taken: set[str] = set()
    for index, volume in enumerate(volumes):
        place = f"{path}[{index}]"
        if not volume.name:
            yield required(f"{place}.name")
        else:
            yield from each(names.label(volume.name), f"{place}.name", volume.name)
        if volume.name in taken:
            yield duplicate(f"{place}.name", volume.name)
        taken.add(volume.name)
        yield from _volume_errors(volume, place)


def _volume_errors(volume: Volume, path: str) -> Errors:
    given = [json_name for name, json_name in _SOURCES.items() if getattr(volume, name) is not None]
    if not given:
        yield required(path, "must specify a volume type")
    yield from (forbidden(f"{path}.{name}", "may not specify more than 1 volume type") for name in given[1:])
    if volume.empty_dir is not None:
        limit = volume.empty_dir.size_limit
        if limit is not None and limit.sign < 0:
            yield forbidden(f"{path}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity")
    if volume.host_path is not None:
        yield from _host_path_errors(volume.host_path, f"{path}.hostPath")
    if volume.config_map is not None:
        if not volume.config_map.name:
            yield required(f"{path}.configMap.name")
        yield from _files_errors(volume.config_map.default_mode, volume.config_map.items, f"{path}.configMap")
    if volume.secret is not None:
        if not volume.secret.secret_name:
            yield required(f"{path}.secret.secretName")
        yield from _files_errors(volume.secret.default_mode, volume.secret.items, f"{path}.secret")
    if volume.downward_api is not None:
        yield from _mode_errors(volume.downward_api.default_mode, f"{path}.downwardAPI.defaultMode")
        yield from _downward_errors(volume.downward_api.items, f"{path}.downwardAPI.items")
    if volume.projected is not None:
        yield from _projected_errors(volume.projected, f"{path}.projected")
    if volume.persistent_volume_claim is not None and not volume.persistent_volume_claim.claim_name:
        yield required(f"{path}.persistentVolumeClaim.claimName")


def _host_path_errors(source: HostPathVolumeSource, path: str) -> Errors:
    if not source.path:
        yield required(f"{path}.path")
        return
    yield from no_nul(source.path, f"{path}.path")
    yield from no_backsteps(source.path, f"{path}.path")
    yield from one_of(source.type, HOST_PATH_TYPES, f"{path}.type")


def _projected_errors(source: ProjectedVolumeSource, path: str) -> Errors:
    yield from _mode_errors(source.default_mode, f"{path}.defaultMode")
    for index, projection in enumerate(source.sources):
        place = f"{path}.sources[{index}]"
        parts = {"configMap": projection.config_map, "secret": projection.secret}
        for name, part in parts.items():
            if part is not None:
                if not part.name:
                    yield required(f"{place}.{name}.name")
                yield from _files_errors(None, part.items, f"{place}.{name}")
        if projection.downward_api is not None:
            yield from _downward_errors(projection.downward_api.items, f"{place}.downwardAPI.items")


def _files_errors(mode: int | None, items: Iterable[KeyToPath], path: str) -> Errors:
    yield from _mode_errors(mode, f"{path}.defaultMode")
    for index, item in enumerate(items):
        place = f"{path}.items[{index}]"
        if not item.key:
            yield required(f"{place}.key")
        yield from _file_path_errors(item.path, f"{place}.path")
        yield from _mode_errors(item.mode, f"{place}.mode")


def _downward_errors(files: Iterable[DownwardAPIVolumeFile], path: str) -> Errors:
    for index, file in enumerate(files):
        place = f"{path}[{index}]"
        yield from _file_path_errors(file.path, f"{place}.path")
        yield from _mode_errors(file.mode, f"{place}.mode")
        if file.field_ref is not None:
            yield from field_selector_errors(file.field_ref, FILE_FIELDS, f"{place}.fieldRef")
            if file.resource_field_ref is not None:
                yield invalid(
                    place, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"
                )
        elif file.resource_field_ref is None:
            yield required(place, "one of fieldRef and resourceFieldRef is required")
        else:
            reference = file.resource_field_ref
            if not reference.container_name:
                yield required(f"{place}.resourceFieldRef.containerName")
            yield from resource_selector_errors(reference, f"{place}.resourceFieldRef")


def _file_path_errors(value: str, path: str) -> Errors:
    if not value:
        yield required(path)
        return
    yield from no_nul(value, path)
    yield from descending_path_errors(value, path)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")


def _mode_errors(mode: int | None, path: str) -> Errors:
    if mode is not None and not 0 <= mode <= LARGEST_MODE:
        yield invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")


def mount_errors(mounts: Iterable[VolumeMount], volumes: Mapping[str, Volume], path: str) -> Errors:
    taken: set[str] = set()
    for index, mount in enumerate(mounts):
        place = f"{path}[{index}]"
        if not mount.name:
            yield required(f"{place}.name")
        if mount.name not in volumes:
            yield not_found(f"{place}.name", mount.name)
        if not mount.mount_path:
            yield required(f"{place}.mountPath")
        yield from no_nul(mount.mount_path, f"{place}.mountPath")
        if mount.mount_path in taken:
            yield invalid(f"{place}.mountPath", mount.mount_path, "must be unique")
        taken.add(mount.mount_path)
        for name, part in {"subPath": mount.sub_path, "subPathExpr": mount.sub_path_expr}.items():
            if part:
                yield from descending_path_errors(part, f"{place}.{name}")
        if mount.sub_path and mount.sub_path_expr:
            detail = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{place}.subPathExpr", mount.sub_path_expr, detail)
