//! TLS configuration: the cryptography provider and the trusted certificates.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};

use super::ClientSettings;

/// Returns the TLS configuration for these settings. Settings that need no TLS load no certificates.
pub(super) fn config(settings: &ClientSettings) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(provider()?);
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let mut config = match settings.tls {
        false => builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
        #[cfg(feature = "webpki-roots")]
        true => {
            let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        #[cfg(not(feature = "webpki-roots"))]
        true => {
            let verifier = rustls_platform_verifier::Verifier::new(provider)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
        }
    };
    config.alpn_protocols = match settings.http1 {
        true => vec![b"http/1.1".to_vec()],
        false => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    Ok(config)
}

#[cfg(feature = "aws-lc-rs")]
fn provider() -> Result<CryptoProvider, rustls::Error> {
    Ok(rustls::crypto::aws_lc_rs::default_provider())
}

#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
fn provider() -> Result<CryptoProvider, rustls::Error> {
    Ok(rustls::crypto::ring::default_provider())
}

#[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
fn provider() -> Result<CryptoProvider, rustls::Error> {
    Err(rustls::Error::General("no cryptography was chosen".into()))
}
