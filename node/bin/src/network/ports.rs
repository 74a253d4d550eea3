//! Checks that the addresses of a node are free before anything starts.

use super::config::NodeConfig;
use anyhow::Context as _;
use std::net::{SocketAddr, TcpListener};

/// Fails with the name of the setting where somebody else listens on one of the node's addresses, or the node itself on
/// two.
pub(super) fn check_free(config: &NodeConfig, metrics: Option<SocketAddr>) -> anyhow::Result<()> {
    // All are held until all are there.
    let _peers = listen("listen", config.listen)?;
    let _rpc = listen("rpc", config.rpc)?;
    let _grpc = config.grpc.as_ref().map(|grpc| listen("grpc", grpc.address)).transpose()?;
    let _metrics = metrics.map(|address| listen("--metrics-addr", address)).transpose()?;
    Ok(())
}

fn listen(setting: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).with_context(|| {
        format!("cannot listen on {address}: stop what does, or choose another address for {setting:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::GrpcSettings;
    use almanac_primitives::DurationMs;
    use std::net::Ipv4Addr;

    fn config(listen: SocketAddr, rpc: SocketAddr) -> NodeConfig {
        NodeConfig::new("key".into(), listen, rpc, DurationMs(500), Vec::new())
    }

    #[test]
    fn the_setting_whose_address_is_taken_is_named() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let taken = TcpListener::bind(any).unwrap();
        let address = taken.local_addr().unwrap();
        for (config, setting) in [(config(address, any), "\"listen\""), (config(any, address), "\"rpc\"")] {
            let error = format!("{:#}", check_free(&config, None).unwrap_err());
            assert!(error.contains(setting) && error.contains(&address.to_string()), "{error}");
            assert!(error.contains("in use"), "{error}");
        }
        drop(taken);
        check_free(&config(address, any), None).unwrap();
        let error = check_free(&config(address, address), None).unwrap_err().to_string();
        assert!(error.contains("\"rpc\""), "one address for both: {error}");
        check_free(&config(any, address), None).unwrap();
        let grpc = Some(GrpcSettings { address, tls: None });
        let error = check_free(&NodeConfig { grpc, ..config(any, address) }, None).unwrap_err().to_string();
        assert!(error.contains("\"grpc\""), "{error}");
        let error = check_free(&config(any, address), Some(address)).unwrap_err().to_string();
        assert!(error.contains("--metrics-addr"), "{error}");
    }
}
