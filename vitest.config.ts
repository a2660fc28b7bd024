import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

// Only a test that hangs takes so long: what a test says of time must hold on a machine that is busy with other work.
const shared = { testTimeout: 300_000, hookTimeout: 300_000 }

const inPackages = ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts"]
/**
 * Not for every few minutes. The subject is a process of its own: an embedded PostgreSQL, a benchmark's
 * generator and target; or it takes a while: deadlines of the wire and of targets, plans over days of partitions,
 * hundreds of random runs, every route with every credential, every operation or type with every wrong input, hostile code and
 * texts.
 */
const dear = [
  "apps/cli/test/process/**/*.test.ts",
  "apps/gateway/test/{Admin,Start}.test.ts",
  "packages/embedded-postgres/test/**/*.test.ts",
  "benchmarks/test/**/*.test.ts",
  "packages/channels/test/{Machine,Sequences}.test.ts",
  "packages/coordination/test/{Coordination,IngestLease,Outages,Pacer}.test.ts",
  "packages/entities/test/{Breakdown,BulkOperation,ClusterWire,Commands,DeliveryQueue,HandingOver,OrderingKeys,RunFairness,Senders,Workshop}.test.ts",
  "packages/egress/test/{AttemptErrorCode,Egress,Stream}.test.ts",
  "packages/foreign-databases/test/{PgBouncer,PostgresServers,Strangers}.test.ts",
  "packages/formatter/test/{Hostile,Large,Phrases,Words}.test.ts",
  "packages/ingress/test/ProxyUpstream.test.ts",
  "packages/interpolation/test/Template.test.ts",
  "packages/redaction/test/Redaction.test.ts",
  "packages/resources/test/SourceSettingPlaces.test.ts",
  "packages/rules/test/{Deduplication,Explanation,FilterLimits,FilterProperty}.test.ts",
  "packages/sandbox/test/{Hostile,Priority}.test.ts",
  "packages/storage/test/{Counting,HotPlans,Journal,LockSession,Partitions,Retention,RetentionCutOff,RetentionRuns,RollupCompaction,Secrets}.test.ts",
  "packages/storage/test/reads/{Metrics,Plans,Scan}.test.ts",
  "packages/api/test/{Commands,EveryList,Formatter,Isolation,Lists,ProjectKeys,Strict,TeamLimits,Transformations,WorkflowRuns}.test.ts",
  "packages/telemetry/test/Otlp.test.ts",
  "packages/verification/test/providers/code/{forms,totality}.test.ts",
  "packages/workflows/test/RandomGraphs.test.ts"
]
/**
 * What a worker has loaded serves all its files, which halves the processor time. A suite that leaves something behind in what it imports
 * would be told by the ones after it: a suite puts back what it changes (timers, environment), and gives its names to no one else's things.
 */
const sharing = { isolate: false }

/**
 * Suites that depend on the clock: rates, the time of a delivery or of an event-loop turn, and code in the sandbox, which has a
 * second. They run one at a time, after all others. A suite that is held to processor time, to memory or to a number runs beside
 * others: what other processes do does not count in these.
 */
const measuring = [
  "test/cluster/{rates,sharing}.test.ts",
  "test/contract/{CostlyBodies,CostlyFilters,Transformations}.test.ts",
  "test/security/{FloodedBodies,LargeAnswers,LargeDefinitions,Strangers}.test.ts",
  "packages/entities/test/TransformationRuns.test.ts",
  "packages/runtime/test/EventLoopBudget.test.ts",
  "packages/sandbox/test/{Batches,Children,OutputLimits,Paths,Pool,Sealed,Semantics}.test.ts"
]

export default defineConfig({
  test: {
    globalSetup: ["test/globalSetup.ts"],
    setupFiles: ["test/support/seeded.ts"],
    // Vitest leaves one processor to itself, which is half of a small machine. Suites wait for databases and processes, too.
    maxWorkers: Math.max(3, availableParallelism()),
    projects: [
      {
        extends: true,
        // What runs in one process beside PostgreSQL: `npm run test:quick`.
        test: { ...shared, ...sharing, name: "quick", include: inPackages, exclude: [...dear, ...measuring] }
      },
      {
        extends: true,
        test: {
          ...shared,
          ...sharing,
          name: "processes",
          include: dear,
          exclude: ["**/node_modules/**", ...measuring]
        }
      },
      {
        extends: true,
        test: {
          ...shared,
          ...sharing,
          name: "gateway",
          include: ["test/**/*.test.ts", "docs/examples/*.test.ts"],
          exclude: ["**/node_modules/**", ...measuring],
          // They wait for processes of their own, for deadlines and for retries more than they work: three of them keep two
          // processors busy, and four take longer.
          maxWorkers: Math.max(3, Math.floor(availableParallelism() / 2)),
          sequence: { groupOrder: 1 }
        }
      },
      {
        extends: true,
        test: {
          ...shared,
          ...sharing,
          name: "measuring",
          include: measuring,
          fileParallelism: false,
          sequence: { groupOrder: 2 }
        }
      }
    ]
  }
})
