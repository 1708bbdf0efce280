//! The query API: which articles resemble this one, what is known of it, what would this text be.
//!
//! Everything a client controls is bounded: the time and bytes of a request, how many are worked on at once. What is
//! asked is read from state, which goes on being worked on; nothing is ever changed. What this process does not hold its
//! peers are asked for.

mod explain;
mod held;
mod library;
mod peers;
mod question;
mod resolve;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connections as serve;
use super::problem::Problem;
use super::{HttpError, json as answered};
use crate::config::Secret;
use crate::status::Guard;

use explain::Pair;
use held::Held;
use library::Answer;
pub use library::Library;
use peers::{FORWARDED, Gathered, Peers, Reply};
use question::Question;

/// Questions that are worked on or wait for it at the same time.
const PLACES: usize = 64;
/// How long an answer may take.
const TIME: Duration = Duration::from_secs(5);
/// How long a body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);
/// Questions of peers are counted by themselves: else those who wait for each other would find no place.
const PEERS_PLACES: usize = 64;

/// What the API answers: every path, parameter and field.
const OPENAPI: &str = include_str!("openapi.json");

/// One of the questions that may be worked on at once.
type Place = OwnedSemaphorePermit;

#[derive(Clone)]
struct Api {
    library: Arc<Library>,
    peers: Arc<Peers>,
    token: Option<Arc<Secret>>,
    hosts: Arc<[String]>,
    places: Arc<Semaphore>,
    peers_places: Arc<Semaphore>,
}

/// Serves the API until the process ends; says where. Where there is a token, only who has it is answered.
///
/// # Errors
/// The port cannot be had.
pub fn serve_queries(listen: SocketAddr, library: Library, guard: Guard) -> Result<SocketAddr, HttpError> {
    let http = &library.config.http;
    let api = Api {
        peers: Arc::new(Peers::new(http)),
        token: http.token.clone().map(Arc::new),
        hosts: http.hosts.clone().into(),
        places: Arc::new(Semaphore::new(PLACES)),
        peers_places: Arc::new(Semaphore::new(PEERS_PLACES)),
        library: Arc::new(library),
    };
    let router = Router::new()
        .route("/api/v1/articles/{id}", get(article))
        .route("/api/v1/articles/{id}/fingerprint", get(fingerprint))
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
    serve::start("http.query", listen, router, ARRIVAL + TIME, guard, || {})
}

/// Only who has the token is answered, whatever was asked; without a token, only who asks for us by a name of ours.
async fn authorise(State(api): State<Api>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).map(|host| String::from_utf8_lossy(host.as_bytes()));
    if let Some(host) = host.filter(|host| api.token.is_none() && !is_ours(host, &api.hosts)) {
        let detail = format!("{host:?} is no name of this API; http.hosts lists those that it goes by");
        return Problem::new(StatusCode::MISDIRECTED_REQUEST, "host", detail).into_response();
    }
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

/// Whether a request may name us so. A page of somebody else can let its own name stand for our address and so read what
/// we answer to a browser (DNS rebinding); a number, `localhost` and the names that an operator lists are not its own.
fn is_ours(host: &str, listed: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_number = bare.parse::<std::net::IpAddr>().is_ok();
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let local = name == "localhost" || name.ends_with(".localhost");
    is_number || local || listed.iter().any(|listed| listed == "*" || listed.eq_ignore_ascii_case(&name))
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

async fn article(State(api): State<Api>, headers: HeaderMap, path: Id) -> Response {
    api.answer(&headers, async { Ok(Question::Article(id(path)?)) }).await
}

async fn fingerprint(State(api): State<Api>, headers: HeaderMap, path: Id) -> Response {
    api.answer(&headers, async { Ok(Question::Fingerprint(id(path)?)) }).await
}

async fn similar(
    State(api): State<Api>,
    headers: HeaderMap,
    path: Id,
    RawQuery(query): RawQuery,
) -> Response {
    let question = async { Ok(Question::Similar(id(path)?, Wanted::parse(query.as_deref())?)) };
    api.answer(&headers, question).await
}

async fn cluster(State(api): State<Api>, headers: HeaderMap, path: Id) -> Response {
    api.answer(&headers, async { Ok(Question::Cluster(id(path)?)) }).await
}

async fn check(State(api): State<Api>, headers: HeaderMap, body: Body) -> Response {
    let limit = api.library.largest_body();
    api.answer(&headers, async { Ok(Question::Check(arrived(body, limit).await?)) }).await
}

async fn explain(State(api): State<Api>, headers: HeaderMap, body: Body) -> Response {
    let limit = api.library.largest_body() * 2;
    let forwarded = headers.contains_key(FORWARDED);
    let explained = async {
        let place = Arc::new(api.place(forwarded)?);
        let pair = Pair::parse(&arrived(body, limit).await?)?;
        api.explain(pair, forwarded, &place).await
    };
    match explained.await {
        Ok(value) => answered(StatusCode::OK, &value),
        Err(problem) => problem.into_response(),
    }
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
    fn place(&self, forwarded: bool) -> Result<Place, Problem> {
        let places = if forwarded { &self.peers_places } else { &self.places };
        Arc::clone(places).try_acquire_owned().map_err(|_| {
            let detail = "too many questions at once; ask again in a moment";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
        })
    }

    /// Answers a question, if there is a place.
    async fn answer(
        &self,
        headers: &HeaderMap,
        question: impl Future<Output = Result<Question, Problem>>,
    ) -> Response {
        let forwarded = headers.contains_key(FORWARDED);
        let asked = async {
            let place = self.place(forwarded)?;
            Ok((question.await?, place))
        };
        let (question, place) = match asked.await {
            Ok(asked) => asked,
            Err(problem) => return Problem::into_response(problem),
        };
        let Answer { result, held } = self.settle(question, forwarded, &Arc::new(place)).await;
        let mut response = match result {
            Ok(value) => answered(StatusCode::OK, &value),
            Err(problem) => problem.into_response(),
        };
        if forwarded {
            held.write(response.headers_mut());
        }
        response
    }

    /// What is known here, and where that may not be all, what the peers know.
    async fn settle(&self, question: Question, forwarded: bool, place: &Arc<Place>) -> Answer {
        let (library, own) = (Arc::clone(&self.library), question.clone());
        let here = self.work(place, move || library.answer(&own)).await;
        let mut here = here.unwrap_or_else(|problem| Answer { result: Err(problem), held: Held::default() });
        if forwarded || !self.library.is_open(&question, &here) {
            return here;
        }
        let mut held = here.held.clone();
        let enough = |reply: &Reply| {
            held.add(&reply.held);
            let known = reply.answer.as_ref().or(here.result.as_ref().ok());
            let found = known.is_some_and(|answer| self.library.is_enough(&question, answer, &held));
            held.covers(None) || found && self.library.is_in_one_place()
        };
        let Gathered { replies, unanswered } = self.peers.ask(&question, enough).await;
        let answers = here.result.clone().ok().into_iter();
        let answers = answers.chain(replies.into_iter().filter_map(|reply| reply.answer)).collect();
        here.held = held;
        if let Some(mut answer) = question.merge(answers) {
            answer["unanswered"] = json!(unanswered);
            here.result = Ok(answer);
        }
        if self.library.is_open(&question, &here) {
            here.result = Err(incomplete(&here.held, &unanswered));
        }
        here
    }

    /// Compares two, wherever what is known of them is.
    async fn explain(&self, pair: Pair, forwarded: bool, place: &Arc<Place>) -> Result<Value, Problem> {
        let mut known = [None, None];
        let mut unanswered = BTreeSet::new();
        for (side, known) in [&pair.a, &pair.b].into_iter().zip(&mut known) {
            if let Some(id) = side.id() {
                let question = Question::Fingerprint(id.to_owned());
                let found = self.settle(question, forwarded, place).await.result?;
                let silent = found["unanswered"].as_array().into_iter().flatten();
                unanswered.extend(silent.filter_map(Value::as_str).map(str::to_owned));
                *known = Some(found);
            }
        }
        let library = Arc::clone(&self.library);
        let explained = self.work(place, move || library.explain(pair, known.each_ref().map(Option::as_ref)));
        let mut explained = explained.await??;
        explained["unanswered"] = json!(unanswered);
        Ok(explained)
    }

    /// Works away from the connections. Who asked waits a bounded time; the place is taken until the work is done.
    async fn work<T: Send + 'static>(
        &self,
        place: &Arc<Place>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let place = Arc::clone(place);
        let worked = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        });
        match tokio::time::timeout(TIME, worked).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => Err(Problem::internal()),
            Err(_) => {
                let detail = format!("no answer within {} seconds", TIME.as_secs());
                Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, "late", detail))
            }
        }
    }
}

/// Nobody who was asked knows it, and not everybody could be asked.
fn incomplete(held: &Held, unanswered: &BTreeSet<String>) -> Problem {
    let absent = held.absent();
    let detail = match &absent {
        None => "it is not known yet how many partitions there are; ask again".to_owned(),
        Some(absent) => format!(
            "it may be in partitions {absent:?}, which nobody who answered holds: their processes are away, take them over \
             at the moment, or are not named in http.peers; ask again"
        ),
    };
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "incomplete", detail)
        .with("unanswered", json!(unanswered))
        .with("absent_partitions", json!(absent.unwrap_or_default()))
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
