//! The other processes of the stage, asked for what this one does not hold. One hop: who is asked as a peer asks nobody.
//!
//! A peer that is dead, silent or slow costs its time limit and is named; it never costs more. How many are asked, how many
//! connections that takes, and how much of an answer is read, is bounded.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Request, StatusCode, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use super::held::Held;
use super::question::Question;
use super::resolve::Resolver;
use crate::config::{Http, Secret};

/// Marks a question of a peer, which is not passed on.
pub(super) const FORWARDED: &str = "samestory-forwarded";
/// The longest answer: a hundred similar articles with their titles take a tenth of it.
const LARGEST: usize = 4 << 20;
/// Questions to peers that are under way at the same time; the others wait within their time.
const UNDER_WAY: usize = 256;

/// The other processes.
pub(super) struct Peers {
    resolver: Arc<Resolver>,
    timeout: Duration,
    token: Option<Arc<Secret>>,
    places: Arc<Semaphore>,
    /// Those that did not answer when they were last asked.
    silent: Arc<Mutex<BTreeSet<String>>>,
}

/// What a peer said.
pub(super) struct Reply {
    pub(super) held: Held,
    /// Nothing where it knows nothing of it.
    pub(super) answer: Option<Value>,
}

/// What came of asking.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) replies: Vec<Reply>,
    /// Peers that did not answer, ascending.
    pub(super) unanswered: BTreeSet<String>,
}

impl Peers {
    pub(super) fn new(http: &Http) -> Peers {
        Peers {
            resolver: Arc::new(Resolver::new(http.peers.clone())),
            timeout: http.peer_timeout,
            token: http.token.clone().map(Arc::new),
            places: Arc::new(Semaphore::new(UNDER_WAY)),
            silent: Arc::default(),
        }
    }

    fn silent(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks all of them at once, until that is enough or their time is over.
    pub(super) async fn ask(&self, question: &Question, mut enough: impl FnMut(&Reply) -> bool) -> Gathered {
        let mut gathered = Gathered::default();
        let deadline = tokio::time::Instant::now() + self.timeout;
        let (peers, unresolved) = self.resolver.peers(deadline).await;
        gathered.unanswered.extend(unresolved);
        let mut pending: BTreeSet<String> = peers.iter().map(|peer| peer.name.clone()).collect();
        self.silent().retain(|name| pending.contains(name));
        let mut asked = JoinSet::new();
        for peer in peers {
            let (question, token) = (question.clone(), self.token.clone());
            let (places, silent) = (Arc::clone(&self.places), Arc::clone(&self.silent));
            asked.spawn(async move {
                let reply = tokio::time::timeout_at(deadline, async {
                    let _place = places.acquire().await.map_err(|_| "nobody asks any more")?;
                    exchange(peer.address, &question, token.as_deref()).await
                });
                let reply = reply.await.unwrap_or_else(|_| Err("no answer in time".into()));
                let mut silent = silent.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(error) = &reply {
                    tracing::debug!(peer = peer.name, "a peer did not answer: {error}");
                    silent.insert(peer.name.clone());
                } else {
                    silent.remove(&peer.name);
                }
                (peer.name, reply.ok())
            });
        }
        while let Some(joined) = asked.join_next().await {
            let Ok((name, reply)) = joined else { continue };
            pending.remove(&name);
            match reply {
                None => drop(gathered.unanswered.insert(name)),
                Some(reply) => {
                    let enough = enough(&reply);
                    gathered.replies.push(reply);
                    if enough {
                        break;
                    }
                }
            }
        }
        // Those that were not waited for are heard all the same, so that it is known how they are.
        let silent = self.silent();
        gathered.unanswered.extend(pending.into_iter().filter(|name| silent.contains(name)));
        asked.detach_all();
        gathered
    }
}

/// Ends a connection with the question it was made for.
struct Ends(AbortHandle);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(
    address: SocketAddr,
    question: &Question,
    token: Option<&Secret>,
) -> Result<Reply, Failure> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let _ends = Ends(tokio::spawn(connection).abort_handle());
    let (method, path, body) = question.request();
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address.to_string())
        .header(header::CONNECTION, "close")
        .header(FORWARDED, "1");
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()))?;
        value.set_sensitive(true);
        request = request.header(header::AUTHORIZATION, value);
    }
    let response = sender.send_request(request.body(Body::from(body))?).await?;
    let (head, body) = response.into_parts();
    let held = Held::read(&head.headers);
    match head.status {
        StatusCode::OK => {
            let body = to_bytes(Body::new(body), LARGEST).await?;
            Ok(Reply { held, answer: Some(serde_json::from_slice(&body)?) })
        }
        StatusCode::NOT_FOUND => Ok(Reply { held, answer: None }),
        // It is there, and cannot say: too busy, another token, a state that cannot be read.
        status => Err(format!("it answers {status}").into()),
    }
}
