//! The query API: which articles resemble this one, what is known of it, what would this text be.
//!
//! Everything a client controls is bounded: the time and bytes of a request, how many are worked on at once. What is
//! asked is read from state, which goes on being worked on; nothing is ever changed.

mod explain;
mod library;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::problem::Problem;
use super::{HttpError, json, serve};
use crate::config::Secret;

pub use library::Library;

/// Questions that are worked on or wait for it at the same time.
const PLACES: usize = 64;
/// How long an answer may take.
const TIME: Duration = Duration::from_secs(5);
/// How long a body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);

/// What the API answers: every path, parameter and field.
const OPENAPI: &str = include_str!("openapi.json");

#[derive(Clone)]
struct Api {
    library: Arc<Library>,
    token: Option<Arc<Secret>>,
    places: Arc<Semaphore>,
}

/// Serves the API until the process ends; says where. Where there is a token, only who has it is answered.
///
/// # Errors
/// The port cannot be had.
pub fn serve_queries(
    listen: SocketAddr,
    library: Library,
    token: Option<Secret>,
) -> Result<SocketAddr, HttpError> {
    let api = Api {
        library: Arc::new(library),
        token: token.map(Arc::new),
        places: Arc::new(Semaphore::new(PLACES)),
    };
    let router = Router::new()
        .route("/api/v1/articles/{id}", get(article))
        .route("/api/v1/articles/{id}/similar", get(similar))
        .route("/api/v1/clusters/{id}", get(cluster))
        .route("/api/v1/check", post(check))
        .route("/api/v1/explain", post(explain))
        .route("/api/v1/openapi.json", get(openapi))
        .fallback(async || Problem::unknown("there is no such path; see /api/v1/openapi.json"))
        .method_not_allowed_fallback(async || {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                "see /api/v1/openapi.json for the methods of a path",
            )
        })
        .layer(from_fn_with_state(api.clone(), authorise))
        .with_state(api);
    serve::start("http.query", listen, router, || {})
}

/// Only who has the token is answered, whatever was asked.
async fn authorise(State(api): State<Api>, request: Request, next: Next) -> Response {
    if let Some(token) = &api.token {
        let given = request
            .headers()
            .get(header::AUTHORIZATION)
            .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        if !given.is_some_and(|given| is_same(given, token.reveal().as_bytes())) {
            let detail = "give the token as `Authorization: Bearer …`";
            return Problem::new(StatusCode::UNAUTHORIZED, "token", detail).into_response();
        }
    }
    next.run(request).await
}

/// Takes as long for a wrong token as for the right one, however much of it is right.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let differs = (0..token.len()).fold(given.len() ^ token.len(), |differs, at| {
        differs | usize::from(given.get(at).copied().unwrap_or(!token[at]) ^ token[at])
    });
    std::hint::black_box(differs) == 0
}

type Id = Result<Path<String>, PathRejection>;

fn id(path: Id) -> Result<String, Problem> {
    path.map(|Path(id)| id).map_err(|error| Problem::bad_request(error.body_text()))
}

async fn article(State(api): State<Api>, path: Id) -> Response {
    api.answer(async { id(path) }, |library, id| library.article(&id)).await
}

async fn similar(State(api): State<Api>, path: Id, RawQuery(query): RawQuery) -> Response {
    api.answer(async { Ok((id(path)?, Wanted::parse(query.as_deref())?)) }, |library, (id, wanted)| {
        library.similar(&id, wanted)
    })
    .await
}

async fn cluster(State(api): State<Api>, path: Id) -> Response {
    api.answer(async { id(path) }, |library, id| library.cluster(&id)).await
}

async fn check(State(api): State<Api>, body: Body) -> Response {
    let limit = api.library.largest_body();
    api.answer(arrived(body, limit), |library, body| library.check(&body)).await
}

async fn explain(State(api): State<Api>, body: Body) -> Response {
    let limit = api.library.largest_body() * 2;
    api.answer(arrived(body, limit), |library, body| library.explain(&body)).await
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// The body of a request, if it is not too large and does not take too long.
async fn arrived(body: Body, limit: usize) -> Result<Bytes, Problem> {
    match tokio::time::timeout(ARRIVAL, to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let detail = format!("a body of more than {limit} bytes, or one that was cut off");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail))
        }
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", "the body took too long to arrive")),
    }
}

impl Api {
    /// Works on a question away from the connections, if there is a place.
    async fn answer<Q: Send + 'static>(
        &self,
        question: impl Future<Output = Result<Q, Problem>>,
        work: impl FnOnce(&Library, Q) -> Result<Value, Problem> + Send + 'static,
    ) -> Response {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let detail = "too many questions at once; ask again in a moment";
            return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).into_response();
        };
        let question = match question.await {
            Ok(question) => question,
            Err(problem) => return problem.into_response(),
        };
        let library = Arc::clone(&self.library);
        let worked = tokio::task::spawn_blocking(move || {
            let answer = work(&library, question);
            drop(place);
            answer
        });
        match tokio::time::timeout(TIME, worked).await {
            Ok(Ok(Ok(value))) => json(StatusCode::OK, &value),
            Ok(Ok(Err(problem))) => problem.into_response(),
            Ok(Err(_)) => Problem::internal().into_response(),
            Err(_) => {
                let detail = format!("no answer within {} seconds", TIME.as_secs());
                Problem::new(StatusCode::GATEWAY_TIMEOUT, "late", detail).into_response()
            }
        }
    }
}

/// How many similar articles are wanted, and how similar.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Wanted {
    limit: usize,
    min_score: f64,
}

impl Wanted {
    fn parse(query: Option<&str>) -> Result<Wanted, Problem> {
        let mut wanted = Wanted { limit: 10, min_score: 0.0 };
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=100).contains(limit));
                    wanted.limit =
                        limit.ok_or_else(|| Problem::bad_request("limit: give a number from 1 to 100"))?;
                }
                "min_score" => {
                    let score = value.parse().ok().filter(|score| (0.0..=1.0).contains(score));
                    wanted.min_score =
                        score.ok_or_else(|| Problem::bad_request("min_score: give a share from 0 to 1"))?;
                }
                _ => return Err(Problem::bad_request("the parameters are limit and min_score")),
            }
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_same_or_not() {
        assert!(is_same(b"secret", b"secret"));
        for wrong in [&b""[..], b"s", b"secre", b"secret2", b"Secret", b"\0\0\0\0\0\0"] {
            assert!(!is_same(wrong, b"secret"), "{wrong:?}");
        }
    }

    #[test]
    fn parameters_are_in_their_bounds_or_refused() {
        assert_eq!(Wanted::parse(None).unwrap(), Wanted { limit: 10, min_score: 0.0 });
        assert_eq!(
            Wanted::parse(Some("min_score=0.5&limit=3")).unwrap(),
            Wanted { limit: 3, min_score: 0.5 }
        );
        for wrong in ["limit=0", "limit=101", "limit=x", "min_score=2", "min_score=NaN", "offset=1"] {
            assert!(Wanted::parse(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
