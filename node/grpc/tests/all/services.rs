//! Health, reflection, and what is not gRPC.

use crate::support::*;
use almanac_rpc::Limits;
use bytes::Bytes;
use http::Request;
use serde_json::Value;

async fn client() -> (Served, Client) {
    let served = start(Limits::default(), Value::Null, Ok("0x".to_owned())).await;
    let (client, _) = Client::connect(served.grpc.address()).await;
    (served, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn hedera_23_reflection_lists_the_services() {
    let (_served, client) = client().await;
    for version in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        // list_services = 7, a string.
        let answer = client.send(&path, &[], frame(&[0x3a, 1, b'*'])).await;
        assert_eq!(answer.status, Some(0), "{answer:?}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        for service in ["almanac.ScheduleService", "almanac.RecordService", "grpc.health.v1.Health"] {
            assert!(text.contains(service), "{service} is not in {text}");
        }
        // file_containing_symbol = 4: the file has the names of the source.
        let symbol = b"almanac.ScheduleService";
        let asked = [&[0x22, u8::try_from(symbol.len()).unwrap()][..], symbol].concat();
        let answer = client.send(&path, &[], frame(&asked)).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        for name in ["createSchedule", "nodeTransactionPrecheckCode", "SCHEDULE_EXPIRY_IS_BUSY", "sigMap"] {
            assert!(text.contains(name), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hedera_23_health_answers() {
    let (_served, client) = client().await;
    let asked = |service: &str| {
        let length = u8::try_from(service.len()).unwrap();
        frame(&[&[0x0a, length][..], service.as_bytes()].concat())
    };
    for service in ["", "almanac.ScheduleService", "almanac.RecordService"] {
        let answer = client.send("/grpc.health.v1.Health/Check", &[], asked(service)).await;
        assert_eq!((answer.status, &answer.body[5..]), (Some(0), &[0x08, 1][..]), "SERVING: {answer:?}");
    }
    client.send("/grpc.health.v1.Health/Check", &[], asked("other")).await.failed(5, "no service");
    client.send("/grpc.health.v1.Health/Watch", &[], asked("")).await.failed(12, "Check");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_served_says_so() {
    let (_served, client) = client().await;
    for path in ["/", "/almanac.Other/get", "/almanac.ScheduleService", "//"] {
        client.send(path, &[], frame(&[])).await.failed(12, "reflection");
    }
    let unknown = client.send("/almanac.ScheduleService/updateSchedule", &[], frame(&[])).await;
    assert_eq!(unknown.status, Some(12), "{unknown:?}");
    let path = "/grpc.health.v1.Health/Check";
    for (headers, http) in [
        (&[("content-type", "application/json")][..], 415),
        (&[("content-type", "application/grpc-web")], 415),
        (&[("origin", "https://page.example")], 403),
    ] {
        assert_eq!(client.send(path, headers, frame(&[])).await.http, http, "{headers:?}");
    }
    let get = Request::get("http://node/").header("content-type", "application/grpc").body(()).unwrap();
    assert_eq!(client.raw(get, Bytes::new()).await.http, 405);
}
