import { defineConfig } from "vitest/config"

// Only a test that hangs takes so long: what a test says of time must hold on a machine that is busy with other work.
const shared = { testTimeout: 300_000, hookTimeout: 300_000 }

export default defineConfig({
  test: {
    globalSetup: ["test/globalSetup.ts"],
    projects: [
      {
        extends: true,
        test: {
          ...shared,
          name: "packages",
          include: ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts", "benchmarks/test/**/*.test.ts"]
        }
      },
      {
        extends: true,
        test: {
          ...shared,
          name: "gateway",
          include: ["test/**/*.test.ts"],
          // They start real processes and mind the time these take: one suite at a time, after the others.
          fileParallelism: false,
          sequence: { groupOrder: 1 }
        }
      }
    ]
  }
})
