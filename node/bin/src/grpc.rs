//! Where gRPC is served, and with which certificate: flags of `dev`, an object in the config of a node.

use crate::{
    regular_file::{self, CERTIFICATE_BYTES_MAX},
    secret_file,
};
use almanac_grpc::Tls;
use anyhow::Context as _;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

/// Flags of `dev`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "gRPC")]
pub(crate) struct GrpcFlags {
    /// Serve gRPC on this port; 0 picks a free port [default: gRPC is off].
    #[arg(long, value_name = "PORT")]
    pub(crate) grpc_port: Option<u16>,

    /// Use TLS with this certificate chain, a PEM file.
    #[arg(long, value_name = "FILE", requires_all = ["grpc_port", "grpc_key"])]
    pub(crate) grpc_certificate: Option<PathBuf>,

    /// Private key of the certificate, a PEM file that only its owner can read.
    #[arg(long, value_name = "FILE", requires = "grpc_certificate")]
    pub(crate) grpc_key: Option<PathBuf>,
}

/// The object of a node's config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct GrpcSettings {
    /// Where it is served.
    pub(crate) address: SocketAddr,
    /// Certificate chain and key, for TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsFiles>,
}

/// Files with a certificate chain and its key, as PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Where gRPC is served, with the certificate read.
#[derive(Clone, Debug)]
pub(crate) struct GrpcPlace {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<Tls>,
}

impl GrpcFlags {
    /// What the flags ask for, on the host of JSON-RPC.
    pub(crate) fn place(&self, host: IpAddr) -> anyhow::Result<Option<GrpcPlace>> {
        let Some(port) = self.grpc_port else { return Ok(None) };
        let files = self.grpc_certificate.clone().zip(self.grpc_key.clone());
        let tls = files.map(|(certificate, key)| TlsFiles { certificate, key });
        GrpcSettings { address: (host, port).into(), tls }.place().map(Some)
    }
}

impl GrpcSettings {
    /// Reads the certificate and its key.
    pub(crate) fn place(&self) -> anyhow::Result<GrpcPlace> {
        let tls = self.tls.as_ref().map(TlsFiles::read).transpose()?;
        Ok(GrpcPlace { address: self.address, tls })
    }

    /// Makes paths usable from anywhere.
    pub(crate) fn resolve(&mut self, directory: &Path) {
        if let Some(TlsFiles { certificate, key }) = &mut self.tls {
            for place in [certificate, key] {
                *place = directory.join(&*place);
            }
        }
    }
}

impl TlsFiles {
    fn read(&self) -> anyhow::Result<Tls> {
        let certificate = regular_file::read(&self.certificate, CERTIFICATE_BYTES_MAX)?;
        let key = secret_file::read_private(&self.key, CERTIFICATE_BYTES_MAX)?;
        let files = || format!("{} and {}", self.certificate.display(), self.key.display());
        Tls::from_pem(&certificate, &key).with_context(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;
    use std::{fs, net::Ipv4Addr, os::unix::fs::PermissionsExt as _};

    const CERTIFICATE: &str = include_str!("../../grpc/tests/all/tls/certificate.pem");
    const KEY: &str = include_str!("../../grpc/tests/all/tls/key.pem");

    fn flags(given: &[&str]) -> Result<GrpcFlags, clap::Error> {
        let cli = Cli::try_parse_from([&["almanac", "dev"], given].concat())?;
        let Command::Dev(config) = cli.command else { unreachable!("dev was asked for") };
        Ok(config.grpc)
    }

    #[test]
    fn hedera_23_nothing_listens_unless_asked() {
        let host = Ipv4Addr::LOCALHOST.into();
        assert!(flags(&[]).unwrap().place(host).unwrap().is_none());
        let place = flags(&["--grpc-port", "50211"]).unwrap().place(host).unwrap().unwrap();
        assert_eq!(place.address, SocketAddr::from((host, 50_211)));
        assert!(place.tls.is_none());
        for incomplete in [
            &["--grpc-certificate", "c", "--grpc-key", "k"][..],
            &["--grpc-port", "1", "--grpc-certificate", "c"],
            &["--grpc-port", "1", "--grpc-key", "k"],
        ] {
            assert!(flags(incomplete).is_err(), "{incomplete:?}");
        }
    }

    #[test]
    fn hedera_23_a_key_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = (directory.path().join("c.pem"), directory.path().join("k.pem"));
        fs::write(&certificate, CERTIFICATE).unwrap();
        fs::write(&key, KEY).unwrap();
        let tls = TlsFiles { certificate, key: key.clone() };
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
        let error = format!("{:#}", tls.read().unwrap_err());
        assert!(error.contains("readable by others (mode 640)"), "{error}");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        tls.read().unwrap();
        fs::write(&key, "no key").unwrap();
        let error = format!("{:#}", tls.read().unwrap_err());
        assert!(error.contains("no private key") && error.contains("k.pem"), "{error}");
    }
}
