//! A wire between two processes that can be cut, held up, and read the meter of.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

/// What a wire does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Passes them on.
    Whole,
    /// Holds them back; nobody is told, as where packets get lost.
    Stalled,
    /// Hangs up, and takes no new connection.
    Cut,
}

/// Passes connections on to an address. Its threads end with the process.
#[derive(Clone)]
pub struct Relay {
    pub address: SocketAddr,
    line: Arc<Line>,
}

struct Line {
    wire: Mutex<Wire>,
    bytes: AtomicU64,
    ends: Mutex<Vec<TcpStream>>,
}

/// Time between two looks at a stalled wire.
const LOOK_EVERY: Duration = Duration::from_millis(5);

impl Relay {
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let line = Arc::new(Line {
            wire: Mutex::new(Wire::Whole),
            bytes: AtomicU64::new(0),
            ends: Mutex::default(),
        });
        let relay = Self { address, line: line.clone() };
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                // Nobody may be listening there now; whoever dialled finds out by the hangup.
                let Ok(far) = TcpStream::connect(target) else { continue };
                line.join(near, far);
            }
        });
        relay
    }

    pub fn set(&self, wire: Wire) {
        *self.line.wire.lock().unwrap() = wire;
        if wire == Wire::Cut {
            self.line.hang_up();
        }
    }

    /// Bytes that went through so far, both ways.
    pub fn bytes(&self) -> u64 {
        self.line.bytes.load(SeqCst)
    }
}

impl Line {
    fn join(self: &Arc<Self>, near: TcpStream, far: TcpStream) {
        // Held to the end: a wire that is cut meanwhile must find these ends.
        let wire = self.wire.lock().unwrap();
        if *wire == Wire::Cut {
            return;
        }
        for end in [&near, &far] {
            end.set_nodelay(true).unwrap();
            self.ends.lock().unwrap().push(end.try_clone().unwrap());
        }
        let ways = [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)];
        for (from, to) in ways {
            let line = self.clone();
            thread::spawn(move || line.pump(from, to));
        }
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            while *self.wire.lock().unwrap() == Wire::Stalled {
                thread::sleep(LOOK_EVERY);
            }
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
            self.bytes.fetch_add(length as u64, SeqCst);
        }
        for end in [from, to] {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn hang_up(&self) {
        for end in self.ends.lock().unwrap().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}
