//! Connections of strangers to the port that validators listen on: from many addresses, none with a key.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpSocket,
    runtime::Runtime,
};

/// Connections to each validator that are open or about to be.
const CALLERS: u8 = 200;

/// Networks of 256 addresses each that they come from.
const NETWORKS: u8 = 8;

/// Strangers that call again as soon as they are hung up on. Dropping them ends it.
pub struct Strangers {
    calls: Arc<AtomicU64>,
    runtime: Option<Runtime>,
}

impl Strangers {
    /// Calls all of these addresses.
    pub fn call(victims: impl Iterator<Item = SocketAddr>) -> Self {
        let calls = Arc::<AtomicU64>::default();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        for victim in victims {
            for network in 0..NETWORKS {
                for caller in 1..=CALLERS / NETWORKS * 3 {
                    runtime.spawn(bother(victim, network, caller, calls.clone()));
                }
            }
        }
        Self { calls, runtime: Some(runtime) }
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.calls.load(SeqCst)
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        self.runtime.take().expect("taken here only").shutdown_background();
    }
}

async fn bother(victim: SocketAddr, network: u8, caller: u8, calls: Arc<AtomicU64>) {
    let address = SocketAddr::from((Ipv4Addr::new(127, 1, network, caller), 0));
    loop {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(address).unwrap();
        if let Ok(mut stream) = socket.connect(victim).await {
            let number = calls.fetch_add(1, SeqCst);
            // A third says nothing, a third nonsense, a third claims to be somebody and says no more.
            let nonsense = [0x5a; 4_096];
            let somebody = [&[32][..], &[7; 32]].concat();
            let said: &[u8] = [&[][..], &nonsense, &somebody][usize::try_from(number % 3).unwrap()];
            let _ = stream.write_all(said).await;
            let _ = stream.read(&mut [0; 64]).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
