//! A gRPC server above methods that are made up, and a client that can misbehave.
#![allow(unreachable_pub, reason = "each test file uses a part of it")]

use almanac_grpc::{GrpcConfig, GrpcServer, Tls};
use almanac_primitives::testing::CHAIN;
use almanac_rpc::{Access, Limits, Server, ServerConfig};
use bytes::{BufMut as _, Bytes, BytesMut};
use h2::{RecvStream, client::SendRequest};
use http::{HeaderMap, Request, Response};
use jsonrpsee::{RpcModule, types::ErrorObjectOwned};
use percent_encoding::percent_decode_str;
use prost::Message;
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};
use tokio::{net::TcpStream, task::JoinHandle};

/// A hash whose record takes an hour.
pub const SLOW: &str = "0x5555555555555555555555555555555555555555555555555555555555555555";

pub struct Served {
    pub grpc: GrpcServer,
    pub rpc: Server,
}

/// What `eth_call` answers: output, or the data of a revert.
pub type Called = Result<String, String>;

pub async fn start(limits: Limits, record: Value, called: Called) -> Served {
    start_with(limits, record, called, None).await
}

pub async fn start_with(limits: Limits, record: Value, called: Called, tls: Option<Tls>) -> Served {
    let mut methods = RpcModule::new((record, called));
    methods
        .register_async_method("almanac_getRecord", |params, context, _| async move {
            let hash: String = params.one()?;
            if hash == SLOW {
                tokio::time::sleep(Duration::from_secs(3_600)).await;
            }
            // That of another hash is null.
            let record = &context.0;
            let found = if record["transactionHash"] == hash { record.clone() } else { Value::Null };
            Ok::<_, ErrorObjectOwned>(found)
        })
        .unwrap();
    methods
        .register_method("eth_call", |_, context, _| match context.1.clone() {
            Ok(output) => Ok(output),
            Err(data) => Err(ErrorObjectOwned::owned(3, "execution reverted", Some(data))),
        })
        .unwrap();
    methods
        .register_method("eth_sendRawTransaction", |params, _, _| {
            let raw: String = params.one()?;
            let raw = alloy_primitives::hex::decode(raw).unwrap();
            if raw.len().is_multiple_of(2) {
                return Err(ErrorObjectOwned::owned(-32_000, "insufficient funds: made up", None::<()>));
            }
            Ok(json!(alloy_primitives::keccak256(raw)))
        })
        .unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let config = ServerConfig { limits, access: Access::developer() };
    let rpc = Server::start(any, config, methods, vec![], &[]).await.unwrap();
    let config = GrpcConfig { address: any, chain: CHAIN, tls };
    let grpc = GrpcServer::start(config, rpc.guests().unwrap()).await.unwrap();
    Served { grpc, rpc }
}

/// One connection.
#[derive(Clone)]
pub struct Client(pub SendRequest<Bytes>);

/// What came back: HTTP's status, gRPC's status, its text, and the messages.
#[derive(Debug)]
pub struct Answer {
    pub http: u16,
    pub status: Option<i32>,
    pub text: String,
    pub body: Bytes,
}

impl Client {
    /// Connects. The task ends when the connection does.
    pub async fn connect(address: SocketAddr) -> (Self, JoinHandle<()>) {
        Self::connect_with(address, h2::client::Builder::new()).await
    }

    pub async fn connect_with(address: SocketAddr, builder: h2::client::Builder) -> (Self, JoinHandle<()>) {
        let socket = TcpStream::connect(address).await.unwrap();
        let (client, connection) = builder.handshake::<_, Bytes>(socket).await.unwrap();
        let ended = tokio::spawn(async move {
            let _ = connection.await;
        });
        (Self(client), ended)
    }

    /// A request as gRPC sends it.
    pub async fn call(&self, path: &str, message: &impl Message) -> Answer {
        self.send(path, &[], frame(&message.encode_to_vec())).await
    }

    pub async fn send(&self, path: &str, headers: &[(&str, &str)], body: Bytes) -> Answer {
        let usual = [("content-type", "application/grpc"), ("te", "trailers")];
        let headers =
            usual.iter().filter(|(name, _)| headers.iter().all(|(given, _)| given != name)).chain(headers);
        let request = headers.fold(Request::post(format!("http://node{path}")), |request, (name, value)| {
            request.header(*name, *value)
        });
        self.raw(request.body(()).unwrap(), body).await
    }

    pub async fn raw(&self, request: Request<()>, body: Bytes) -> Answer {
        let mut client = self.0.clone().ready().await.unwrap();
        let (response, mut stream) = client.send_request(request, body.is_empty()).unwrap();
        if !body.is_empty() {
            // The server may end the stream before it has read all.
            let _ = stream.send_data(body, true);
        }
        let response = response.await.unwrap();
        read(response).await
    }
}

async fn read(response: Response<RecvStream>) -> Answer {
    let (head, mut stream) = response.into_parts();
    let mut body = BytesMut::new();
    while let Some(Ok(part)) = stream.data().await {
        let _ = stream.flow_control().release_capacity(part.len());
        body.extend_from_slice(&part);
    }
    let trailers = stream.trailers().await.ok().flatten().unwrap_or_default();
    let of =
        |headers: &HeaderMap, name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let find = |name: &str| of(&trailers, name).or_else(|| of(&head.headers, name));
    Answer {
        http: head.status.as_u16(),
        status: find("grpc-status").map(|status| status.parse().unwrap()),
        text: percent_decode_str(&find("grpc-message").unwrap_or_default()).decode_utf8_lossy().into_owned(),
        body: body.freeze(),
    }
}

impl Answer {
    /// The message of an answer that is OK.
    pub fn message<M: Message + Default>(&self) -> M {
        assert_eq!((self.http, self.status), (200, Some(0)), "{self:?}");
        M::decode(&self.body[5..]).unwrap()
    }

    /// gRPC's status, and whether its text has this.
    pub fn failed(&self, status: i32, text: &str) {
        assert_eq!((self.http, self.status), (200, Some(status)), "{self:?}");
        assert!(self.text.contains(text), "{text:?} is not in {self:?}");
    }
}

/// A message with gRPC's five bytes before it.
pub fn frame(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(message.len().try_into().unwrap());
    framed.put_slice(message);
    framed.freeze()
}
