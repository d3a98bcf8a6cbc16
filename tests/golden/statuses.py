"""A refusal as the golden files write the API's Status."""

from nodeagent.admission.refusal import Refusal


def status_of(refusal: Refusal | None) -> dict[str, object] | None:
    if refusal is None:
        return None
    return {"code": refusal.code, "reason": refusal.reason, "message": refusal.message}
