import { defineConfig } from "vitest/config"

// Only a test that hangs takes so long: what a test says of time must hold on a machine that is busy with other work.
const shared = { testTimeout: 300_000, hookTimeout: 300_000 }

const inPackages = ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts"]
/** Their subject is a process of its own: the sandbox's children, an embedded PostgreSQL, a benchmark's generator and target. */
const startingProcesses = [
  "packages/sandbox/test/**/*.test.ts",
  "packages/postgres/test/**/*.test.ts",
  "benchmarks/test/**/*.test.ts"
]

export default defineConfig({
  test: {
    globalSetup: ["test/globalSetup.ts"],
    projects: [
      {
        extends: true,
        // What runs in one process beside PostgreSQL: `npm run test:quick`.
        test: { ...shared, name: "quick", include: inPackages, exclude: startingProcesses }
      },
      {
        extends: true,
        test: { ...shared, name: "processes", include: startingProcesses }
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
