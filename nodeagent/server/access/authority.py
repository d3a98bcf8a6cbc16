"""The node's own certificate authority: makes what is missing or about to expire, as files.

Run as a program of its own (`python -m nodeagent.server.access.authority DIR ADDRESS...`), so that the agent
never carries the library in its memory. Files are for their owner only, and come into being whole.
"""

import contextlib
import datetime
import ipaddress
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_CERTIFICATE, CA_KEY = "ca.crt", "ca.key"
SERVER_CERTIFICATE, SERVER_KEY = "server.crt", "server.key"
CA_DAYS, LEAF_DAYS = 3650, 365
RENEWED_BEFORE_DAYS = 60
_CLOCK_SKEW = datetime.timedelta(minutes=5)
_DAY = datetime.timedelta(days=1)


def ensure(directory: Path, addresses: Sequence[str], now: datetime.datetime) -> None:
    """Make the authority and the server's certificate, unless they are there and good for long enough."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    key, certificate = _authority(directory, now)
    if not _is_good(directory, certificate, addresses, now):
        own = ec.generate_private_key(ec.SECP256R1())
        names = [_general_name(each) for each in addresses]
        usage = ExtendedKeyUsageOID.SERVER_AUTH
        subject = _name("nodeagent", "nodeagent")
        leaf = _leaf(subject, own, certificate, key, usage, now, names)
        _write(directory / SERVER_KEY, _pem_of(own))
        _write(directory / SERVER_CERTIFICATE, leaf.public_bytes(serialization.Encoding.PEM))


def client(directory: Path, user: str, group: str, now: datetime.datetime) -> tuple[bytes, bytes, bytes]:
    """Return the authority's certificate, and a new client's certificate and key, as PEM."""
    key, certificate = _authority(directory, now)
    own = ec.generate_private_key(ec.SECP256R1())
    leaf = _leaf(_name(user, group), own, certificate, key, ExtendedKeyUsageOID.CLIENT_AUTH, now)
    pem = serialization.Encoding.PEM
    return certificate.public_bytes(pem), leaf.public_bytes(pem), _pem_of(own)


def _authority(
    directory: Path, now: datetime.datetime
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    with contextlib.suppress(FileNotFoundError, ValueError, TypeError):
        key = serialization.load_pem_private_key((directory / CA_KEY).read_bytes(), None)
        certificate = x509.load_pem_x509_certificate((directory / CA_CERTIFICATE).read_bytes())
        left = certificate.not_valid_after_utc - now
        is_good = key.public_key() == certificate.public_key() and left > LEAF_DAYS * _DAY
        if isinstance(key, ec.EllipticCurvePrivateKey) and is_good:
            return key, certificate
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name("nodeagent-ca", "nodeagent")
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + CA_DAYS * _DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    _write(directory / CA_KEY, _pem_of(key))
    _write(directory / CA_CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM))
    return key, certificate


def _leaf(
    subject: x509.Name,
    own: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate,
    issuer_key: ec.EllipticCurvePrivateKey,
    usage: x509.ObjectIdentifier,
    now: datetime.datetime,
    names: Sequence[x509.GeneralName] = (),
) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + LEAF_DAYS * _DAY)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _is_good(
    directory: Path, issuer: x509.Certificate, addresses: Sequence[str], now: datetime.datetime
) -> bool:
    faults = (FileNotFoundError, ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound)
    with contextlib.suppress(*faults):
        certificate = x509.load_pem_x509_certificate((directory / SERVER_CERTIFICATE).read_bytes())
        key = serialization.load_pem_private_key((directory / SERVER_KEY).read_bytes(), None)
        if key.public_key() != certificate.public_key():
            return False
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        certificate.verify_directly_issued_by(issuer)
        has_names = {_general_name(each) for each in addresses} <= set(names)
        return has_names and certificate.not_valid_after_utc - now > RENEWED_BEFORE_DAYS * _DAY
    return False


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _name(user: str, group: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, group),
            x509.NameAttribute(NameOID.COMMON_NAME, user),
        ]
    )


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, data: bytes) -> None:
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


if __name__ == "__main__":
    ensure(Path(sys.argv[1]), sys.argv[2:], datetime.datetime.now(datetime.UTC))
