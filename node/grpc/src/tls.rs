//! TLS: a certificate and its key, as PEM.

use std::{fmt, io, sync::Arc};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
    server::TlsStream,
};

/// A certificate chain and its key, ready to be used.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why a certificate and a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The text has none.
    #[error("there is no {0} in PEM form")]
    Missing(&'static str),
    /// They do not fit each other, or are of a kind that is not known.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

impl Tls {
    /// Reads the certificate chain, the server's own first, and its private key.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or(TlsError::Missing("certificate"))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::Missing("private key"))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
        // gRPC is HTTP/2 and nothing else.
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        socket: S,
    ) -> io::Result<TlsStream<S>> {
        self.0.accept(socket).await
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key stays out of logs.
        f.write_str("Tls")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_or_key_is_named() {
        let wrong = |certificate: &str, key: &str| {
            Tls::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap_err().to_string()
        };
        assert_eq!(wrong("", ""), "there is no certificate in PEM form");
        let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(wrong(certificate, ""), "there is no private key in PEM form");
    }
}
