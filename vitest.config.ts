import { defineConfig } from "vitest/config"

const shared = { testTimeout: 30_000, hookTimeout: 60_000 }

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
          include: ["test/**/*.test.ts", "docs/examples/*.test.ts"],
          // They start real processes and mind the time these take: one suite at a time, after the others.
          fileParallelism: false,
          sequence: { groupOrder: 1 }
        }
      }
    ]
  }
})
