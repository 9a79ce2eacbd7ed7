//! The processes of one launch agree on something before they start: each says what it has, process
//! 0 decides, and all take the answer or none does.
//!
//! Connections are those of a trial: TLS pinned by the join token, frames of JSON. Three steps, so
//! that a process that was lost on the way keeps the others from acting on their own: what each has,
//! the answer, and the word that all have it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout_at};

use crate::frame;
use crate::tls;
use crate::token::Token;

/// Pause between two tries to connect: the first process may start later than the others.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a connection may take to prove itself.
const PROVING: Duration = Duration::from_secs(10);

/// This process among those that are to agree.
#[derive(Clone, Debug)]
pub struct Place {
    /// Number, from 0.
    pub index: usize,
    /// How many there are.
    pub world: usize,
    /// Host and port of process 0.
    pub address: String,
    /// How long to wait for all of them.
    pub patience: Duration,
}

/// Why there is no agreement.
#[derive(Debug, thiserror::Error)]
pub enum AgreeError {
    /// The port of process 0 can not be opened.
    #[error("port {0} can not be opened")]
    Listen(u16, #[source] io::Error),
    /// The address holds no port.
    #[error("`{0}` is no host:port")]
    Address(String),
    /// Process 0 was not reached.
    #[error("process 0 at {address} was not reached in {seconds} s: {why}")]
    NotReached {
        /// Where it should be.
        address: String,
        /// How long it was tried.
        seconds: u64,
        /// The last thing that happened.
        why: String,
    },
    /// Not all came.
    #[error("{missing} did not come in {seconds} s")]
    Missing {
        /// Who, in words.
        missing: String,
        /// How long they were waited for.
        seconds: u64,
    },
    /// Process 0 gave up.
    #[error("process 0 gave up: {0}")]
    GivenUp(String),
    /// A connection broke, or said something else.
    #[error("the connection broke before all had the answer")]
    Broken(#[source] io::Error),
    /// No runtime, no TLS.
    #[error("set-up of the connection")]
    SetUp(#[source] io::Error),
}

#[derive(Serialize, Deserialize)]
struct Proof {
    proof: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Said<T> {
    index: usize,
    what: T,
}

#[derive(Serialize, Deserialize)]
enum Word<A> {
    Answer(A),
    All,
    GivenUp(String),
}

#[derive(Serialize, Deserialize)]
struct Heard;

/// Says `own`, and gives what process 0 made of what all said, in their order. `decide` is called in
/// process 0 alone.
pub fn agree<T, A>(
    place: &Place,
    token: &Token,
    own: T,
    decide: impl FnOnce(Vec<T>) -> A,
) -> Result<A, AgreeError>
where
    T: Serialize + DeserializeOwned + Send + 'static,
    A: Serialize + DeserializeOwned,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(AgreeError::SetUp)?;
    runtime.block_on(async {
        if place.index == 0 {
            host(place, token, own, decide).await
        } else {
            guest(place, token, own).await
        }
    })
}

type Incoming = tokio_rustls::server::TlsStream<TcpStream>;

async fn host<T, A>(
    place: &Place,
    token: &Token,
    own: T,
    decide: impl FnOnce(Vec<T>) -> A,
) -> Result<A, AgreeError>
where
    T: Serialize + DeserializeOwned + Send + 'static,
    A: Serialize + DeserializeOwned,
{
    let port = place.address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let port: u16 = port.ok_or_else(|| AgreeError::Address(place.address.clone()))?;
    let until = Instant::now() + place.patience;
    let listener = TcpListener::bind(("::", port)).await;
    let listener = match listener {
        Ok(listener) => listener,
        // a kernel without IPv6
        Err(_) => TcpListener::bind(("0.0.0.0", port))
            .await
            .map_err(|error| AgreeError::Listen(port, error))?,
    };
    let config = tls::server(token).map_err(|e| AgreeError::SetUp(io::Error::other(e)))?;
    let acceptor = tokio_rustls::TlsAcceptor::from(config);
    let token = Arc::new(token.clone());
    let (sender, mut came) = tokio::sync::mpsc::channel(64);
    let accepting = tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, token, sender) = (acceptor.clone(), Arc::clone(&token), sender.clone());
            tokio::spawn(async move {
                let admitted = admit::<T>(tcp, &acceptor, &token);
                if let Ok(Ok(guest)) = tokio::time::timeout(PROVING, admitted).await {
                    let _ = sender.send(guest).await;
                }
            });
        }
    });
    let mut said: Vec<Option<T>> = (0..place.world).map(|_| None).collect();
    said[0] = Some(own);
    let mut streams: Vec<(usize, Incoming)> = Vec::new();
    while said.iter().any(Option::is_none) {
        match timeout_at(until, came.recv()).await {
            Ok(Some((index, what, stream))) if index > 0 && index < place.world => {
                // a process that tries again takes its own place
                streams.retain(|(other, _)| *other != index);
                said[index] = Some(what);
                streams.push((index, stream));
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => {
                accepting.abort();
                let missing = names(&said);
                let word = Word::<A>::GivenUp(format!("{missing} did not come"));
                tell(&mut streams, &word).await;
                let seconds = place.patience.as_secs();
                return Err(AgreeError::Missing { missing, seconds });
            }
        }
    }
    accepting.abort();
    let answer = decide(said.into_iter().flatten().collect());
    let result = confirm(&mut streams, &answer, until).await;
    let last = match &result {
        Ok(()) => Word::All,
        Err(error) => Word::<A>::GivenUp(error.to_string()),
    };
    tell(&mut streams, &last).await;
    result.map(|()| answer).map_err(AgreeError::Broken)
}

/// Gives everyone the answer, and waits until everyone has it.
async fn confirm<A: Serialize>(
    streams: &mut [(usize, Incoming)],
    answer: &A,
    until: Instant,
) -> io::Result<()> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let bytes = frame::encode(&Word::Answer(answer))?;
    for (_, stream) in streams.iter_mut() {
        timeout_at(until, frame::write(stream, &bytes)).await.map_err(late)??;
    }
    for (_, stream) in streams.iter_mut() {
        let heard = frame::read::<Heard>(stream, frame::LARGEST_UNPROVED);
        if timeout_at(until, heard).await.map_err(late)??.is_none() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

async fn tell<A: Serialize>(streams: &mut [(usize, Incoming)], word: &Word<A>) {
    let Ok(bytes) = frame::encode(word) else { return };
    for (_, stream) in streams {
        let sent = async {
            frame::write(stream, &bytes).await?;
            tokio::io::AsyncWriteExt::shutdown(stream).await
        };
        let _ = tokio::time::timeout(Duration::from_secs(1), sent).await;
    }
}

/// Processes that are missing: the first few by number.
fn names<T>(said: &[Option<T>]) -> String {
    let missing: Vec<String> = said
        .iter()
        .enumerate()
        .filter(|(_, said)| said.is_none())
        .map(|(index, _)| index.to_string())
        .collect();
    match &missing[..] {
        [one] => format!("process {one}"),
        [first, rest @ ..] if rest.len() > 3 => {
            format!("process {first} and {} others", rest.len())
        }
        all => format!("processes {}", all.join(", ")),
    }
}

async fn admit<T: DeserializeOwned>(
    tcp: TcpStream,
    acceptor: &tokio_rustls::TlsAcceptor,
    token: &Token,
) -> io::Result<(usize, T, Incoming)> {
    let mut stream = acceptor.accept(tcp).await?;
    let exported = tls::exported(stream.get_ref().1).map_err(io::Error::other)?;
    let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let proof: Proof =
        frame::read(&mut stream, frame::LARGEST_UNPROVED).await?.ok_or_else(ended)?;
    if !tls::proves(token, &exported, &proof.proof) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "wrong token"));
    }
    let said: Said<T> = frame::read(&mut stream, LARGEST_SAID).await?.ok_or_else(ended)?;
    Ok((said.index, said.what, stream))
}

/// Largest thing that a process may say, bytes: its facts.
const LARGEST_SAID: usize = 1 << 20;

async fn guest<T, A>(place: &Place, token: &Token, own: T) -> Result<A, AgreeError>
where
    T: Serialize,
    A: DeserializeOwned,
{
    let config = tls::client(token).map_err(|e| AgreeError::SetUp(io::Error::other(e)))?;
    let connector = tokio_rustls::TlsConnector::from(config);
    let until = Instant::now() + place.patience;
    let mut why = "it does not listen yet".to_owned();
    let mut stream = loop {
        match timeout_at(until, once(place, token, &own, &connector)).await {
            Ok(Ok(stream)) => break stream,
            Ok(Err(error)) => why = error.to_string(),
            Err(_) => {
                let (address, seconds) = (place.address.clone(), place.patience.as_secs());
                return Err(AgreeError::NotReached { address, seconds, why });
            }
        }
        sleep(PAUSE).await;
    };
    // process 0 waits for the others first
    let until = until + place.patience;
    let answer = match word(&mut stream, until).await? {
        Word::Answer(answer) => answer,
        Word::GivenUp(why) => return Err(AgreeError::GivenUp(why)),
        Word::All => return Err(AgreeError::Broken(io::ErrorKind::InvalidData.into())),
    };
    let bytes = frame::encode(&Heard).map_err(AgreeError::Broken)?;
    frame::write(&mut stream, &bytes).await.map_err(AgreeError::Broken)?;
    match word::<A>(&mut stream, until).await? {
        Word::All => Ok(answer),
        Word::GivenUp(why) => Err(AgreeError::GivenUp(why)),
        Word::Answer(_) => Err(AgreeError::Broken(io::ErrorKind::InvalidData.into())),
    }
}

type Outgoing = tokio_rustls::client::TlsStream<TcpStream>;

async fn word<A: DeserializeOwned>(
    stream: &mut Outgoing,
    until: Instant,
) -> Result<Word<A>, AgreeError> {
    match timeout_at(until, frame::read(stream, frame::LARGEST)).await {
        Ok(Ok(Some(word))) => Ok(word),
        Ok(Ok(None)) => Err(AgreeError::Broken(io::ErrorKind::UnexpectedEof.into())),
        Ok(Err(error)) => Err(AgreeError::Broken(error)),
        Err(_) => Err(AgreeError::Broken(io::ErrorKind::TimedOut.into())),
    }
}

async fn once<T: Serialize>(
    place: &Place,
    token: &Token,
    own: &T,
    connector: &tokio_rustls::TlsConnector,
) -> io::Result<Outgoing> {
    let tcp = TcpStream::connect(&place.address).await?;
    let _ = tcp.set_nodelay(true);
    // the key is pinned by the token: the name plays no part
    let name = rustls::pki_types::ServerName::from(std::net::IpAddr::from([127, 0, 0, 1]));
    let mut stream = connector.connect(name, tcp).await?;
    let exported = tls::exported(stream.get_ref().1).map_err(io::Error::other)?;
    let mut bytes = frame::encode(&Proof { proof: tls::proof(token, &exported).to_vec() })?;
    bytes.extend(frame::encode(&Said { index: place.index, what: own })?);
    frame::write(&mut stream, &bytes).await?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(index: usize, world: usize, port: u16, patience: u64) -> Place {
        Place {
            index,
            world,
            address: format!("127.0.0.1:{port}"),
            patience: Duration::from_millis(patience),
        }
    }

    fn free_port() -> u16 {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    fn all(
        world: usize,
        missing: Option<usize>,
        patience: u64,
        tokens: impl Fn(usize) -> Token,
    ) -> Vec<Result<String, AgreeError>> {
        let port = free_port();
        let threads: Vec<_> = (0..world)
            .rev()
            .filter(|index| Some(*index) != missing)
            .map(|index| {
                let token = tokens(index);
                std::thread::spawn(move || {
                    agree(&place(index, world, port, patience), &token, index, |all: Vec<usize>| {
                        format!("{all:?}")
                    })
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }

    #[test]
    fn all_get_the_same_answer() {
        let token = Token::new().unwrap();
        for answer in all(5, None, 10_000, |_| token.clone()) {
            assert_eq!(answer.unwrap(), "[0, 1, 2, 3, 4]");
        }
    }

    #[test]
    fn where_one_is_missing_nobody_acts() {
        let token = Token::new().unwrap();
        for answer in all(4, Some(2), 700, |_| token.clone()) {
            let text = answer.unwrap_err().to_string();
            assert!(text.contains("process 2 did not come"), "{text}");
        }
    }

    #[test]
    fn who_has_another_token_is_nobody() {
        let (right, wrong) = (Token::new().unwrap(), Token::new().unwrap());
        let answers =
            all(3, None, 700, |index| if index == 1 { wrong.clone() } else { right.clone() });
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
    }
}
