import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

// Only a test that hangs takes so long: what a test says of time must hold on a machine that is busy with other work.
const shared = { testTimeout: 600_000, hookTimeout: 600_000 }

/**
 * On CI, a test of processes that fails is run once more: the machine may have been suspended, or another program may have had it for seconds.
 * The log marks it with `(retry x1)`. It does not hide a fault that is always there, and a test that is marked often has one to be mended.
 */
const onceMore = { retry: process.env["CI"] === "true" ? 1 : 0 }

const inPackages = ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts"]
/**
 * Not for every few minutes, and neither are the suites in `test`, which start gateways. The subject is a process of its own: an embedded PostgreSQL, a benchmark's
 * generator and target, a database or broker of others; or it takes more than a second or two: deadlines of the wire and of targets, plans over days of partitions,
 * hundreds of random runs, deletions that look through every table, every trigger of every provider, every route with every credential, every operation or type with every wrong input, hostile code and
 * texts.
 */
const dear = [
  "apps/cli/test/Yaml.test.ts",
  "apps/cli/test/process/**/*.test.ts",
  "apps/gateway/test/{Admin,Doctor,Start}.test.ts",
  "packages/embedded-postgres/test/**/*.test.ts",
  "benchmarks/test/**/*.test.ts",
  "packages/channels/test/{Conformance,Feeds,Machine,Scenarios,Sequences}.test.ts",
  "packages/client/test/Tunnel.test.ts",
  "packages/coordination/test/{Coordination,IngestLease,Outages,Pacer}.test.ts",
  "packages/entities/test/{AlertDelivery,BatchedRuns,Breakdown,BulkOperation,ClusterWire,Commands,DeliveryQueue,HandingOver,Handover,LongRuns,OrderingKeys,RouteHandover,RouteWork,RunDeaths,RunFairness,RunTurns,Senders,Tokens,WorkflowRuns,Workshop}.test.ts",
  "packages/egress/test/{AttemptErrorCode,Egress,Stream,onlyWayOut}.test.ts",
  "packages/foreign-databases/test/{AmqpConsumer,Kafka,KafkaMember,Mysql,NatsJetStream,PgBouncer,PostgresServers,RabbitMq,RedisConsumer,RedisStream,Smtp,Strangers}.test.ts",
  "packages/formatter/test/{Hostile,HtmlToMarkdown,Large,Phrases,Words}.test.ts",
  "packages/ingress/test/{Callbacks,ProxyUpstream,WireServer}.test.ts",
  "packages/interpolation/test/Template.test.ts",
  "packages/redaction/test/Redaction.test.ts",
  "packages/resources/test/SourceSettingPlaces.test.ts",
  "packages/rules/test/{Deduplication,Explanation,FilterLimits,FilterProperty}.test.ts",
  "packages/sandbox/test/{Hostile,Priority}.test.ts",
  "packages/storage/test/{Counting,DataDeletion,DeletedBytes,ExpiringKeys,HotPlans,Journal,KeyRotation,LockSession,Migrations,Partitions,Retention,RetentionCutOff,RetentionDeleted,RetentionRuns,RollupCompaction,ScheduledSources,ScheduledYear,Secrets,TeamDeletion,WorkflowLinks}.test.ts",
  "packages/storage/test/reads/{Metrics,Plans,Scan}.test.ts",
  "packages/api/test/{Actions,Commands,DataDeletions,EveryList,Formatter,Isolation,KeyLimits,Lists,ProjectKeys,ProviderAccounts,Strict,TeamDeletion,TeamLimits,Transformations,WorkflowAggregates,WorkflowRuns,WorkflowTemplates,WorkflowTriggers,WorkflowVersions,Workflows}.test.ts",
  "packages/api/test/streams/Attended.test.ts",
  "packages/telemetry/test/Otlp.test.ts",
  "packages/verification/test/providers/code/{forms,totality}.test.ts",
  "packages/workflows/test/Random{Graphs,Lists,Undo}.test.ts",
  "packages/workflows/test/triggers/Schedule*.test.ts"
]
/**
 * What a worker has loaded serves all its files, which halves the processor time. A suite that leaves something behind in what it imports
 * would be told by the ones after it: a suite puts back what it changes (timers, environment), and gives its names to no one else's things.
 */
const sharing = { isolate: false }

/**
 * Suites that depend on the clock: rates, the time of a delivery or of an event-loop turn, and code in the sandbox, which has a
 * second. They run two at a time, after all others. A suite that is held to processor time, to memory or to a number runs beside
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

/** Suites of a minute or half a minute. They begin first: one that begins last would run alone. */
const long = [
  "benchmarks/test/Scenarios",
  "contract/openapi/Mutated",
  "upgrade/Update",
  "dashboard/Pages",
  "dashboard/Forms",
  "gate/Refusals",
  "sandbox/test/Hostile",
  "test/faults",
  "security/DeadlyRecords",
  "cluster/filters",
  "security/HeldMemory",
  "storage/test/RetentionCutOff",
  "security/DeadlyWork",
  "cluster/projectKeys",
  "cli/test/process/Commands",
  "cli/test/process/Transfer",
  "gateway/test/Start",
  "contract/FrozenBrokers",
  "channels/test/Machine"
]

/** Project by project, because a worker serves one project; long suites first, then large files. */
class LongFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const at = long.findIndex(
        (name) => moduleId.includes(`${name}.test.ts`) || moduleId.includes(`${name}Admin.test.ts`)
      )
      return at === -1 ? long.length : at
    }
    const sorted = (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b))
    return projects.flatMap((name) => sorted.filter(({ project }) => project.name === name))
  }
}

/** In their order. */
const projects = ["processes", "quick", "measuring"]

export default defineConfig({
  test: {
    globalSetup: ["test/globalSetup.ts"],
    setupFiles: ["test/support/seeded.ts"],
    // Node loads suites and sources itself, as it loads the gateway's. In modules that vitest transforms, each use of an import calls a getter.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Four keep two processors busy, because suites also wait: for processes, for deadlines and for retries. Three take an eighth longer.
    maxWorkers: Math.max(4, availableParallelism()),
    sequence: { sequencer: LongFirst },
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
          ...onceMore,
          name: "processes",
          include: [...dear, "test/**/*.test.ts", "docs/examples/*.test.ts"],
          exclude: ["**/node_modules/**", ...measuring]
        }
      },
      {
        extends: true,
        test: {
          ...shared,
          ...sharing,
          ...onceMore,
          name: "measuring",
          include: measuring,
          maxWorkers: 2,
          sequence: { groupOrder: 1 }
        }
      }
    ]
  }
})
