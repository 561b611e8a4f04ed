//! Models the time and cost of `landfall pull --shard I/N` for a large fleet, with 1 to 256 shards.
//! landfall's own code assigns the blobs to shards. The defaults whose description names
//! docs/explanation/performance.md are measured; the others are settings or assumptions. Each
//! parameter can be given as `NAME=NUMBER`.

use anyhow::{Context, Result, bail};
use landfall_model::{assign_shards, transfer_cost};
use std::collections::BTreeMap;

/// The parameters of the model: name, default value, and description with the source of the value.
const PARAMETERS: &[(&str, f64, &str)] = &[
    ("images", 40_000.0, "images of the fleet"),
    ("terabytes", 100.0, "content of the fleet, each blob once"),
    ("layers", 10.0, "layers that only one image has, on average"),
    ("sigma", 2.0, "spread of the layers' log-normal size"),
    ("jobs", 12.0, "--jobs: connections of a runner"),
    ("hosts", 4.0, "upstream hosts with about equal parts"),
    (
        "per_host",
        96.0,
        "maxConcurrent of each host, which all shards share",
    ),
    (
        "request_ms",
        47.0,
        "ms of one request besides its bytes: 910 requests in 3.53 s over 12 connections, \
         docs/explanation/performance.md, Slow network",
    ),
    (
        "connection",
        12.5,
        "MB/s of one connection upstream: 100 Mbit/s, the same link",
    ),
    (
        "runner",
        659.0,
        "MB/s that a runner with two cores can download: docs/explanation/performance.md, pull",
    ),
    (
        "store",
        1e9,
        "MB/s that the store accepts from one runner; unlimited unless it is given",
    ),
    (
        "store_ms",
        0.0,
        "one request to the store besides its bytes",
    ),
    ("part", 16.0, "MB of one part of an upload to the store"),
    (
        "start",
        10.0,
        "seconds until a runner downloads: to start the pod, and to read and split the lock",
    ),
    (
        "memory",
        32.0,
        "MB of memory that a runner uses: docs/explanation/performance.md, pull",
    ),
    (
        "shared_cores",
        0.0,
        "cores that all runners and the upstream share; 0: each runner has a machine of its own",
    ),
    (
        "request_cpu_ms",
        0.0,
        "processor time of one request, at runner and upstream together, if they share cores",
    ),
    (
        "pack",
        852.0,
        "MB/s of the machine that packs: docs/explanation/performance.md, pack",
    ),
];

/// Prices of AWS in us-east-1, on demand, June 2026, in dollars. Fargate (Linux, x86): per vCPU and
/// hour, and per GB and hour. S3 Standard: per thousand PUTs, per thousand GETs, and per GB and
/// month above the first 50 TB.
const VCPU_HOUR: f64 = 0.04048;
const GB_HOUR: f64 = 0.004_445;
const PUTS: f64 = 0.005;
const GETS: f64 = 0.0004;
const GB_MONTH: f64 = 0.022;
/// The number of processors of a runner.
const VCPUS: f64 = 2.0;
/// The memory of a runner, in GB.
const GB: f64 = 4.0;

/// The size of the largest layer, in bytes. Registries reject layers above about 50 GB.
const LARGEST: f64 = 50e9;

/// Prints the table of costs. `given` contains parameters as `NAME=NUMBER`, and optionally
/// `measured=N:SECONDS,…` to compare the model with measurements.
pub(crate) fn scale(given: &[&str]) -> Result<()> {
    let mut parameters: BTreeMap<&str, f64> = PARAMETERS
        .iter()
        .map(|(name, value, _)| (*name, *value))
        .collect();
    // numbers of runners, and the seconds that they took
    let mut measured: Vec<(usize, f64)> = Vec::new();
    for pair in given {
        let (name, value) = pair.split_once('=').context("write NAME=NUMBER")?;
        if name == "measured" {
            for point in value.split(',') {
                let (runners, seconds) = point
                    .split_once(':')
                    .context("write measured=N:SECONDS,…")?;
                measured.push((runners.parse()?, seconds.parse()?));
            }
        } else if let Some(known) = parameters.get_mut(name) {
            *known = value.parse().with_context(|| format!("{name}={value}"))?;
        } else {
            let names: Vec<&str> = PARAMETERS.iter().map(|(name, ..)| *name).collect();
            bail!("{name} is not one of {}", names.join(", "));
        }
    }
    let fleet = blob_sizes(&parameters);
    table(&parameters, &fleet);
    if !measured.is_empty() {
        println!("\n| runners | measured, s | modelled, s | ratio |\n|---:|---:|---:|---:|");
        for (runners, seconds) in measured {
            let modelled = model_run(&parameters, &fleet, runners).makespan;
            println!(
                "| {runners} | {seconds:.1} | {modelled:.1} | {:.2} |",
                modelled / seconds
            );
        }
    }
    println!("\n| parameter | value | |\n|---|---:|---|");
    PARAMETERS
        .iter()
        .for_each(|(name, _, what)| println!("| `{name}` | {} | {what} |", parameters[name]));
    Ok(())
}

/// Returns the sizes of all blobs: the layers, then a config and a manifest for each image.
fn blob_sizes(parameters: &BTreeMap<&str, f64>) -> Vec<u64> {
    let images = parameters["images"] as usize;
    let mut random = Random(17);
    let mut layers: Vec<f64> = (0..(parameters["images"] * parameters["layers"]) as usize)
        .map(|_| (parameters["sigma"] * random.normal()).exp())
        .collect();
    // limiting the largest layers lowers the total, so the sizes are scaled several times
    for _ in 0..20 {
        let scale = parameters["terabytes"] * 1e12 / layers.iter().sum::<f64>();
        layers
            .iter_mut()
            .for_each(|size| *size = (*size * scale).min(LARGEST));
    }
    layers
        .into_iter()
        .map(|size| size as u64)
        .chain((0..images * 2).map(|at| 1000 + at as u64 % 7000))
        .collect()
}

/// Pseudo-random numbers that are the same in each run (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number with the standard normal distribution (Box–Muller).
    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.next()).ln()).sqrt() * (std::f64::consts::TAU * self.next()).cos()
    }
}

/// The modelled cost of a pull by several runners. Times are in seconds.
struct ModelledRun {
    /// The time until the last runner has finished.
    makespan: f64,
    /// The makespan if all runners had the same work, but at least the time of the largest blob and
    /// of the shared cores.
    ideal: f64,
    /// The total time of all runners, which is paid for.
    busy: f64,
    requests: usize,
    puts: f64,
}

fn model_run(parameters: &BTreeMap<&str, f64>, fleet: &[u64], runners: usize) -> ModelledRun {
    // each shard gets its part of a host's limit, at least one connection
    let share = (parameters["per_host"] / runners as f64).floor().max(1.0);
    let connections = parameters["jobs"].min(parameters["hosts"] * share);
    let width = (connections * parameters["connection"])
        .min(parameters["runner"])
        .min(parameters["store"])
        * 1e6;
    let puts = |size: u64| {
        let parts = (size as f64 / (parameters["part"] * 1e6)).ceil().max(1.0);
        // two more requests begin and complete a multipart upload
        if parts > 1.0 { parts + 2.0 } else { 1.0 }
    };
    // large blobs are downloaded in ranges by idle connections, so all connections of a runner
    // finish together
    let seconds = |size: u64| {
        let waits = parameters["request_ms"] + parameters["store_ms"] * puts(size);
        size as f64 / width + waits / 1000.0 / connections
    };
    let mut loads = vec![0.0; runners];
    for (at, shard) in assign_shards(
        fleet
            .iter()
            .enumerate()
            .map(|(at, size)| (at, transfer_cost(*size))),
        runners,
    ) {
        loads[shard - 1] += seconds(fleet[at]);
    }
    let all: f64 = loads.iter().sum();
    let cores = parameters["shared_cores"];
    let at_cores = if cores > 0.0 {
        parameters["request_cpu_ms"] / 1000.0 * fleet.len() as f64 / cores
    } else {
        0.0
    };
    let largest = fleet.iter().map(|size| seconds(*size)).fold(0.0, f64::max);
    ModelledRun {
        makespan: loads.iter().copied().fold(at_cores, f64::max) + parameters["start"],
        ideal: (all / runners as f64).max(largest).max(at_cores) + parameters["start"],
        busy: all + parameters["start"] * runners as f64,
        requests: fleet.len(),
        puts: fleet.iter().map(|size| puts(*size)).sum(),
    }
}

fn table(parameters: &BTreeMap<&str, f64>, fleet: &[u64]) {
    let bytes: f64 = fleet.iter().map(|size| *size as f64).sum();
    println!(
        "{} blobs, {:.1} TB, the largest {:.1} GB.\n",
        fleet.len(),
        bytes / 1e12,
        *fleet.iter().max().unwrap_or(&0) as f64 / 1e9
    );
    println!(
        "| runners | hours | of the ideal | requests upstream | PUTs | memory of all, GB \
         | runners, $ | PUTs, $ |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for runners in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
        let run = model_run(parameters, fleet, runners);
        println!(
            "| {runners} | {:.2} | {:.3} | {} | {:.0} | {:.2} | {:.2} | {:.2} |",
            run.makespan / 3600.0,
            run.makespan / run.ideal,
            run.requests,
            run.puts,
            parameters["memory"] * runners as f64 / 1000.0,
            run.busy / 3600.0 * (VCPUS * VCPU_HOUR + GB * GB_HOUR),
            run.puts / 1000.0 * PUTS,
        );
    }
    let gets = bytes / (parameters["part"] * 1e6) + fleet.len() as f64;
    println!(
        "\nIn addition: {:.0} $ a month for storage. If one machine packs the whole fleet, it \
         reads for {:.1} hours, and its GETs cost {:.2} $.",
        bytes / 1e9 * GB_MONTH,
        bytes / (parameters["pack"] * 1e6) / 3600.0,
        gets / 1000.0 * GETS,
    );
}
