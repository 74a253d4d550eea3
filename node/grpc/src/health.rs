//! gRPC's health checks: a node that answers serves.

use crate::messages::health::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus, health_server::Health,
};
use tonic::{Request, Response, Status};

/// The services that there are; none named means the server.
const SERVICES: [&str; 3] = ["", "almanac.ScheduleService", "almanac.RecordService"];

pub(crate) struct NodeHealth;

#[tonic::async_trait]
impl Health for NodeHealth {
    type WatchStream = tonic::codegen::tokio_stream::Empty<Result<HealthCheckResponse, Status>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let name = request.into_inner().service;
        if !SERVICES.contains(&name.as_str()) {
            return Err(Status::not_found(format!("there is no service {name:.100?}")));
        }
        Ok(Response::new(HealthCheckResponse { status: ServingStatus::Serving.into() }))
    }

    /// A stream without an end would keep a place.
    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("health is not watched here: ask with Check"))
    }
}
