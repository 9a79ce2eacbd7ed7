//! TLS 1.3 between coordinator and worker, keyed by the join token alone.

use std::sync::Arc;

use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer,
    UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, PeerIncompatible, ServerConfig,
    SignatureScheme,
};

use crate::token::Token;

/// Length of the proof that a worker sends.
pub(crate) const PROOF: usize = 32;

/// Label of the value that both ends export from the session (RFC 5705).
const EXPORTER: &[u8] = b"EXPORTER-ncclctl-join";

/// PKCS#8 wrapping of an Ed25519 seed (RFC 8410 §7), up to the seed itself.
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// SubjectPublicKeyInfo of an Ed25519 key (RFC 8410 §4), up to the key itself.
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn public_key(token: &Token) -> Result<Vec<u8>, rustls::Error> {
    let pair = Ed25519KeyPair::from_seed_unchecked(&token.derive(b"coordinator key"))
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    Ok([&SPKI[..], pair.public_key().as_ref()].concat())
}

/// The coordinator's side.
pub(crate) fn server(token: &Token) -> Result<Arc<ServerConfig>, rustls::Error> {
    let pkcs8 = [&PKCS8[..], &token.derive(b"coordinator key")].concat();
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pkcs8));
    let provider = provider();
    let key = provider.key_provider.load_private_key(der)?;
    let spki = CertificateDer::from(public_key(token)?);
    let certified = Arc::new(CertifiedKey::new(vec![spki], key));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified)));
    // nobody comes back to resume: tickets would only cost time and memory
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// A worker's side: accepts the one key that the token gives, and nothing else.
pub(crate) fn client(token: &Token) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = provider();
    let pinned = Pinned { spki: public_key(token)?, provider: Arc::clone(&provider) };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    config.enable_sni = false;
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

/// The worker's proof that it knows the token, good for this very session only.
pub(crate) fn proof(token: &Token, exported: &[u8; 32]) -> [u8; PROOF] {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &token.derive(b"worker proof"));
    let tag = ring::hmac::sign(&key, exported);
    let mut out = [0; PROOF];
    out.copy_from_slice(tag.as_ref());
    out
}

/// Checks a worker's proof in constant time.
pub(crate) fn proves(token: &Token, exported: &[u8; 32], proof: &[u8]) -> bool {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &token.derive(b"worker proof"));
    ring::hmac::verify(&key, exported, proof).is_ok()
}

/// Exports the session's own value from either end.
pub(crate) fn exported<Data>(
    connection: &rustls::ConnectionCommon<Data>,
) -> Result<[u8; 32], rustls::Error> {
    connection.export_keying_material([0; 32], EXPORTER, None)
}

#[derive(Debug)]
struct Pinned {
    spki: Vec<u8>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if end_entity.as_ref() == self.spki {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature_with_raw_key(
            message,
            &SubjectPublicKeyInfoDer::from(cert.as_ref()),
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
