import { defineConfig } from "vitest/config"

// Only a test that hangs takes so long: what a test says of time must hold on a machine that is busy with other work.
const shared = { testTimeout: 300_000, hookTimeout: 300_000 }

const inPackages = ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts"]
/**
 * Not for every few minutes. The subject is a process of its own: the sandbox's children, an embedded PostgreSQL, a benchmark's
 * generator and target; or it takes a while: deadlines of the wire and of targets, plans over days of partitions,
 * hundreds of random runs.
 */
const dear = [
  "apps/cli/test/process/**/*.test.ts",
  "apps/gateway/test/{Admin,Start}.test.ts",
  "packages/sandbox/test/**/*.test.ts",
  "packages/postgres/test/**/*.test.ts",
  "benchmarks/test/**/*.test.ts",
  "packages/coordination/test/{Coordination,Outages}.test.ts",
  "packages/entities/test/{Breakdown,ClusterWire,Commands,DeliveryQueue,HandingOver,Lines,Senders,TransformationRuns}.test.ts",
  "packages/egress/test/{AttemptErrorCode,Egress,Stream}.test.ts",
  "packages/doors/test/{IngestLease,ProxyUpstream}.test.ts",
  "packages/storage/test/{Counting,HotPlans,Journal,LockSession,Partitions,Retention,RetentionCutOff,RollupCompaction}.test.ts",
  "packages/storage/test/reads/{Plans,Scan}.test.ts",
  "packages/api/test/{Commands,EveryList,Lists,Transformations}.test.ts",
  "packages/telemetry/test/Otlp.test.ts"
]
/** Nothing is kept in their modules: the files of a worker share them, which halves the processor time. */
const pure = ["connectors", "model", "resources", "rules", "signatures", "templates"].map(
  (name) => `packages/${name}/test/**/*.test.ts`
)

export default defineConfig({
  test: {
    globalSetup: ["test/globalSetup.ts"],
    setupFiles: ["test/support/seeded.ts"],
    projects: [
      {
        extends: true,
        // With the pure ones, what runs in one process beside PostgreSQL: `npm run test:quick`.
        test: { ...shared, name: "quick", include: inPackages, exclude: [...dear, ...pure] }
      },
      {
        extends: true,
        test: { ...shared, name: "quick-pure", include: pure, isolate: false }
      },
      {
        extends: true,
        test: { ...shared, name: "processes", include: dear }
      },
      {
        extends: true,
        test: {
          ...shared,
          name: "gateway",
          include: ["test/**/*.test.ts", "docs/examples/*.test.ts"],
          // They start real processes and mind the time these take: one suite at a time, after the others.
          fileParallelism: false,
          sequence: { groupOrder: 1 }
        }
      }
    ]
  }
})
