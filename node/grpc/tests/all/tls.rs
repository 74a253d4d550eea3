//! TLS with a certificate that was made for these tests: of nobody, for localhost.

use crate::support::*;
use almanac_grpc::Tls;
use almanac_rpc::Limits;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};

const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.pem");
const KEY: &[u8] = include_bytes!("tls/key.pem");

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_over_tls_and_not_without() {
    let tls = Some(Tls::from_pem(CERTIFICATE, KEY).unwrap());
    let limits = Limits { request_time_max: Duration::from_millis(500), ..Limits::default() };
    let served = start_with(limits, Value::Null, Ok("0x".to_owned()), tls).await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let socket = TcpStream::connect(served.grpc.address()).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let socket = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    Client(client).send("/grpc.health.v1.Health/Check", &[], frame(&[])).await.failed(0, "");
    // A client that never agrees on keys loses its place.
    let (plain, ended) = Client::connect(served.grpc.address()).await;
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("the connection is closed").unwrap();
    drop(plain);
    let silent = TcpStream::connect(served.grpc.address()).await.unwrap();
    let mut byte = [0];
    let closed = tokio::time::timeout(Duration::from_secs(10), async {
        silent.readable().await.unwrap();
        silent.try_read(&mut byte)
    });
    assert!(matches!(closed.await.expect("it is closed"), Ok(0) | Err(_)));
}
