//! What every request passes: the rate, its headers, the size of its body, its time. Then its service answers.

use crate::{
    answer::{Kept, too_much},
    body::Counted,
    health::NodeHealth,
    limits::{MALFORMED_PER_SECOND_MAX, REQUEST_BYTES_MAX},
    messages::{
        DESCRIPTORS,
        almanac::{
            record_service_server::RecordServiceServer, schedule_service_server::ScheduleServiceServer,
        },
        health::health_server::HealthServer,
    },
    outgoing::Outgoing,
    records::Records,
    schedules::Schedules,
    timeout,
};
use almanac_primitives::Chain;
use almanac_rpc::guest::{Guest, GuestRequest, Throttle};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use std::{convert::Infallible, pin::Pin, sync::Arc, time::Duration};
use tokio::sync::Notify;
use tonic::{Status, body::Body, codegen::Service};
use tonic_reflection::server::Builder;

/// All services by name, and how long an answer may take to be read.
pub(crate) struct Front {
    services: [(&'static str, Serve); 5],
    send_time_max: Duration,
    /// Bodies that are no message reach no service, and so no limit of one.
    malformed: Throttle,
}

/// How tonic begins the text about a body that cannot be decoded.
const NOT_READ: &str = "failed to decode Protobuf message";

type Answer = Response<Body>;
type Asked = Request<Counted<Incoming>>;
type Serve = Box<dyn Fn(Asked) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// A service, whatever its type.
fn serve<S>(service: S) -> Serve
where
    S: Service<Asked, Response = Answer, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static,
{
    Box::new(move |request| {
        let mut service = service.clone();
        Box::pin(async move {
            let Ok(answer) = service.call(request).await;
            answer
        })
    })
}

impl Front {
    pub(crate) fn new(chain: Chain, answer_bytes_max: usize, send_time_max: Duration) -> Self {
        let describe = || Builder::configure().register_encoded_file_descriptor_set(DESCRIPTORS);
        let sound = "the descriptors are ours, and tests read them";
        let schedules = ScheduleServiceServer::new(Schedules::new(chain));
        let records = RecordServiceServer::new(Records::new()).max_encoding_message_size(answer_bytes_max);
        let services = [
            ("almanac.ScheduleService", serve(schedules.max_decoding_message_size(REQUEST_BYTES_MAX))),
            ("almanac.RecordService", serve(records.max_decoding_message_size(REQUEST_BYTES_MAX))),
            ("grpc.health.v1.Health", serve(HealthServer::new(NodeHealth))),
            ("grpc.reflection.v1.ServerReflection", serve(describe().build_v1().expect(sound))),
            ("grpc.reflection.v1alpha.ServerReflection", serve(describe().build_v1alpha().expect(sound))),
        ];
        Self { services, send_time_max, malformed: Throttle::new(MALFORMED_PER_SECOND_MAX) }
    }

    /// Answers a request of a connection; `close` ends that connection.
    pub(crate) async fn serve(
        self: Arc<Self>,
        request: Request<Incoming>,
        guest: Guest,
        close: Arc<Notify>,
    ) -> Result<Response<Outgoing>, Infallible> {
        let (asker, answer) = match guest.begin() {
            Ok(asker) => {
                let answer = self.answer(request, asker.clone()).await;
                (Some(asker), answer)
            }
            Err(refused) => (None, Err(too_much(&refused))),
        };
        let mut answer = answer.unwrap_or_else(Status::into_http);
        let kept = answer.extensions_mut().remove::<Kept>().map(|Kept(kept)| kept);
        let time = self.send_time_max;
        Ok(answer.map(|body| Outgoing::new(body, kept, asker, time, close)))
    }

    async fn answer(&self, request: Request<Incoming>, asker: GuestRequest) -> Result<Answer, Status> {
        if let Some(refused) = refusal(request.method(), request.headers()) {
            return Ok(refused);
        }
        let time = timeout::of(request.headers())?;
        let held = asker.hold();
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(asker.clone());
        let request = Request::from_parts(parts, Counted::new(body, held));
        let answered = tokio::time::timeout(time, self.route(request)).await;
        let answer = answered.unwrap_or_else(|_| {
            let text = format!("there was no answer within {} ms", time.as_millis());
            Err(Status::deadline_exceeded(text))
        })?;
        self.check_read(&answer, &asker)?;
        Ok(answer)
    }

    /// A body that cannot be decoded is a fault of the client; tonic calls it one of the server.
    fn check_read(&self, answer: &Answer, asker: &GuestRequest) -> Result<(), Status> {
        let status = Status::from_header_map(answer.headers());
        let Some(text) = status.as_ref().and_then(|status| status.message().strip_prefix(NOT_READ)) else {
            return Ok(());
        };
        self.malformed.take(asker).map_err(|refused| too_much(&refused))?;
        Err(Status::invalid_argument(format!("the body is not the message of this method{text}")))
    }

    async fn route(&self, request: Asked) -> Result<Answer, Status> {
        let path = request.uri().path();
        let asked = path.strip_prefix('/').and_then(|path| path.split_once('/')).map(|(service, _)| service);
        match self.services.iter().find(|(name, _)| Some(*name) == asked) {
            Some((_, serve)) => Ok(serve(request).await),
            None => {
                let path: String = path.chars().take(200).collect();
                Err(Status::unimplemented(format!("there is no {path}: reflection lists what there is")))
            }
        }
    }
}

/// What is not gRPC. A web page cannot send its content type without asking first, and never gets an answer.
fn refusal(method: &Method, headers: &HeaderMap) -> Option<Answer> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_grpc = ["application/grpc", "application/grpc+proto"].contains(&kind);
    let status = match () {
        () if headers.contains_key(header::ORIGIN) => StatusCode::FORBIDDEN,
        () if method != Method::POST => StatusCode::METHOD_NOT_ALLOWED,
        () if !is_grpc => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        () => return None,
    };
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    Some(answer)
}
