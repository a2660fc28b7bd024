import { describe, expect, it } from "@effect/vitest"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, FileSystem, Logger, Result, Schema } from "effect"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import {
  constantTimeEqual,
  hashToken,
  loadSecretKeys,
  parseSecretKeys,
  Secrets
} from "@tidegate/storage/secrets/Secrets"

const keys = (text: string) => Result.getOrThrow(parseSecretKeys(text))
const failure = (text: string) => Result.getOrThrow(Result.flip(parseSecretKeys(text))).message

const layer = (text: string) => Secrets.layer({ keys: keys(text) })

const address = { team_id: "tm_1", table: "sources", column: "auth", id: "src_1" }

// The bytes 0 to 31.
const base64 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
const hex = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
const other = "b25lLWZhbmN5LWtleS10aGF0LWlzLTMyLWJ5dGVzISE="

const encrypt = (ring: string, plaintext: string, at = address) =>
  Effect.flatMap(Secrets, (secrets) => secrets.encrypt(at, plaintext)).pipe(Effect.provide(layer(ring)))

const decrypt = (ring: string, value: string, at = address) =>
  Effect.flatMap(Secrets, (secrets) => secrets.decrypt(at, value)).pipe(Effect.provide(layer(ring)))

const reason = (ring: string, value: string, at = address) =>
  Effect.map(Effect.flip(decrypt(ring, value, at)), (error) => error.reason)

describe("Secrets", () => {
  it.effect("A value that another implementation encrypted is decrypted", () =>
    Effect.gen(function* () {
      // python3: AESGCM(bytes(range(32))).encrypt(bytes(range(12)), "top secret: ü".encode(), b"tm_1|sources|auth|src_1")
      const value = "v1.k1.AAECAwQFBgcICQoL.M22mO7aAoWnoNa2rclVwaU0DjW0UR_WxRPiuVBZ0"
      expect(yield* decrypt(`k1:${base64}`, value)).toBe("top secret: ü")
    })
  )

  it.effect("Every encrypted value has its own nonce and reveals nothing of the text", () =>
    Effect.gen(function* () {
      const values = yield* Effect.all(Array.from({ length: 50 }, () => encrypt(`k1:${base64}`, "top secret")))
      expect(new Set(values.map((value) => value.split(".")[2])).size).toBe(50)
      for (const value of values) {
        expect(value).toMatch(/^v1\.k1\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]{35}$/)
        expect(Buffer.from(value.split(".")[3] ?? "", "base64url").toString("latin1")).not.toContain("top secret")
      }
    })
  )

  it.effect("An encrypted value can only be decrypted at its own address", () =>
    Effect.gen(function* () {
      const value = yield* encrypt(base64, "top secret")
      expect(yield* decrypt(base64, value)).toBe("top secret")
      for (const elsewhere of [{ team_id: "tm_2" }, { table: "destinations" }, { column: "name" }, { id: "src_2" }]) {
        expect(yield* reason(base64, value, { ...address, ...elsewhere })).toBe("tampered")
      }
    })
  )

  it.effect("The newest key encrypts, older keys still decrypt, and a removed key does not", () =>
    Effect.gen(function* () {
      const old = yield* encrypt(`k1:${base64}`, "top secret")
      const rotated = `k2:${other},k1:${base64}`
      expect(yield* decrypt(rotated, old)).toBe("top secret")
      const fresh = yield* encrypt(rotated, "top secret")
      expect(fresh.startsWith("v1.k2.")).toBe(true)
      expect(yield* decrypt(`k2:${other}`, fresh)).toBe("top secret")
      expect(yield* reason(`k1:${base64}`, fresh)).toBe("unknown_key")
      expect(yield* reason(`k2:${other}`, old)).toBe("unknown_key")
      expect(yield* reason(`k1:${other}`, old)).toBe("tampered")
    })
  )

  it.effect("A key that gets an id later still decrypts what it encrypted without one", () =>
    Effect.gen(function* () {
      const value = yield* encrypt(base64, "top secret")
      expect(value.startsWith("v1.630dcd29.")).toBe(true)
      expect(yield* decrypt(`k2:${other},k1:${hex}`, value)).toBe("top secret")
    })
  )

  it.effect("A malformed encrypted value is rejected", () =>
    Effect.gen(function* () {
      const value = yield* encrypt(`k1:${base64}`, "")
      const [, , nonce, sealed] = value.split(".")
      for (const malformed of [
        "",
        "top secret",
        "v1.k1..",
        "v1...",
        `v2.k1.${nonce}.${sealed}`,
        `v1.k1.${nonce}`,
        `v1.k1.${nonce}.${sealed}.`,
        `v1.k1.${nonce}.${sealed}=`,
        `v1.k1.${nonce}A.${sealed}`,
        `v1.k1.${nonce}.${sealed?.slice(0, -2)}`,
        ` ${value}`
      ]) {
        expect(yield* reason(`k1:${base64}`, malformed), malformed).toBe("malformed")
      }
    })
  )

  it.effect("A value sealed with a day's key opens only at its own address, and not as a setting", () =>
    Effect.gen(function* () {
      const open = (text: string) => Effect.provide(Secrets, layer(text))
      const secrets = yield* open(`k1:${base64}`)
      const today = { ...address, id: "req_01m80t1tv5j5bqa2skwkmrm5dd" }
      const value = secrets.seal(today, "top secret: ü")
      expect(value.startsWith("v2.k1.")).toBe(true)
      expect(secrets.seal(today, "top secret: ü")).not.toBe(value)
      expect(secrets.open(today, value)).toStrictEqual(Result.succeed("top secret: ü"))
      expect((yield* open(`k2:${other},k1:${base64}`)).open(today, value)).toStrictEqual(
        Result.succeed("top secret: ü")
      )
      const why = (found: Result.Result<string, { readonly reason: string }>) =>
        Result.isFailure(found) ? found.failure.reason : found.success
      expect(why((yield* open(`k2:${other}`)).open(today, value))).toBe("unknown_key")
      // Another request of that day, and one of another.
      for (const id of ["req_01m80t1tv5j5bqa2skwkmrm5de", "req_01m70t1tv5j5bqa2skwkmrm5dd", "req_1"]) {
        expect(why(secrets.open({ ...today, id }, value)), id).toBe("tampered")
      }
      expect(why(secrets.open(today, yield* secrets.encrypt(today, "x")))).toBe("malformed")
      expect(yield* reason(`k1:${base64}`, value, today)).toBe("malformed")
      expect(yield* reason(`k1:${base64}`, value.replace("v2", "v1"), today)).toBe("tampered")
    })
  )

  it.effect("The error of an unreadable secret names its place and key, but shows no secret", () =>
    Effect.gen(function* () {
      const value = yield* encrypt(`k1:${base64}`, "top secret")
      const error = yield* Effect.flip(decrypt(`k2:${other}`, value))
      expect(error._tag).toBe("SecretUnreadable")
      expect(error.message).toBe("sources.auth of src_1: is encrypted by the key k1, which is not configured")
    })
  )

  const text = Schema.String
  const index = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 }))
  const shift = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 63 }))
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

  it.effect.prop(
    "Any encrypted text is decrypted, and an altered value is rejected",
    [text, index, shift],
    ([plaintext, at, by]) =>
      Effect.gen(function* () {
        const expected = plaintext.toWellFormed()
        const value = yield* encrypt(`k1:${base64}`, expected)
        expect(yield* decrypt(`k1:${base64}`, value)).toBe(expected)

        const start = "v1.k1.".length
        const position = start + (at % (value.length - start))
        const changed = alphabet[(alphabet.indexOf(value.charAt(position)) + by) % alphabet.length]
        const altered = value.slice(0, position) + changed + value.slice(position + 1)
        if (altered === value) return
        expect(["malformed", "tampered"]).toContain(yield* reason(`k1:${base64}`, altered))
      })
  )
})

describe("parseSecretKeys", () => {
  it("A single key is read in base64, base64url or hex and named by its fingerprint", () => {
    const unpadded = base64.replace("=", "")
    for (const text of [base64, unpadded, hex, hex.toUpperCase(), `\n ${base64}\n`, `k:${base64}`]) {
      const [key, ...others] = keys(text)
      expect(others).toHaveLength(0)
      expect(key.id).toBe(text.startsWith("k:") ? "k" : "630dcd29")
      expect(key.key.export().toString("hex")).toBe(hex)
    }
    const [key] = keys(Buffer.alloc(32, 0xff).toString("base64url"))
    expect(key.key.export()).toStrictEqual(Buffer.alloc(32, 0xff))
  })

  it("A list of keys is read with the newest first", () => {
    expect(
      keys(`2026-11:${other}, 2025_01:${hex} ,${Buffer.alloc(32).toString("base64")}`).map(({ id }) => id)
    ).toStrictEqual(["2026-11", "2025_01", "66687aad"])
  })

  it.each([
    ["", "no secret key is given"],
    [" \n", "no secret key is given"],
    [`${base64},`, "secret key 2 is empty"],
    [`a:${base64},,b:${hex}`, "secret key 2 is empty"],
    ["passphrase!", "secret key 1 is neither base64 nor hex"],
    ["cGFzc3dvcmQ=", "secret key 1 has 8 bytes; 32 are needed"],
    [hex.slice(2), "secret key 1 has 31 bytes; 32 are needed"],
    [`k1:${base64}AAAA`, "secret key 1 is neither base64 nor hex"],
    ["k1:", "secret key 1 is neither base64 nor hex"],
    [`:${base64}`, "secret key 1: the id before the colon must be 1 to 32 letters, digits, _ or -"],
    [`k.1:${base64}`, "secret key 1: the id before the colon must be 1 to 32 letters, digits, _ or -"],
    [`a:b:${base64}`, "secret key 1 is neither base64 nor hex"],
    [`k1:${base64},k1:${other}`, "secret key 2 has the id of another key"],
    [`${base64},${hex}`, "secret key 2 has the id of another key"]
  ])("The key list %j is rejected", (text, message) => {
    expect(failure(text)).toBe(message)
  })

  it("Keys do not appear when they are printed", () => {
    const printed = JSON.stringify(keys(`k1:${base64}`))
    expect(printed).not.toContain(base64)
    expect(printed).not.toContain(hex)
  })
})

const inHome = <A, E>(body: (home: string, fs: FileSystem.FileSystem) => Effect.Effect<A, E, FileSystem.FileSystem>) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const folder = yield* fs.makeTempDirectoryScoped({ prefix: "tidegate-secrets-" })
    return yield* body(join(folder, "home", ".tidegate"), fs)
  }).pipe(Effect.provide(NodeFileSystem.layer))

const fingerprints = (ring: ReadonlyArray<{ readonly fingerprint: string }>) => ring.map((key) => key.fingerprint)

describe("loadSecretKeys", () => {
  it.effect("A new key file is readable by its owner only, and the same key is loaded afterwards", () =>
    inHome((home, fs) =>
      Effect.gen(function* () {
        const first = yield* loadSecretKeys(home)
        expect(first).toHaveLength(1)
        expect(fingerprints(yield* loadSecretKeys(home))).toStrictEqual(fingerprints(first))
        expect(yield* fs.readDirectory(home)).toStrictEqual(["secrets.key"])
        expect((yield* fs.stat(join(home, "secrets.key"))).mode & 0o777).toBe(0o600)
        expect((yield* fs.stat(home)).mode & 0o777).toBe(0o700)
      })
    )
  )

  it.effect("Twenty concurrent loads end with one key", () =>
    inHome((home, fs) =>
      Effect.gen(function* () {
        const rings = yield* Effect.all(
          Array.from({ length: 20 }, () => loadSecretKeys(home)),
          { concurrency: "unbounded" }
        )
        expect(new Set(rings.flatMap(fingerprints)).size).toBe(1)
        expect(yield* fs.readDirectory(home)).toStrictEqual(["secrets.key"])
      })
    )
  )

  it.effect("A process that another overtakes uses the other's key and does not replace it", () =>
    inHome((home, real) =>
      Effect.gen(function* () {
        const path = join(home, "secrets.key")
        // The other process makes its file when this one has found none and is about to make its own.
        const overtaken = FileSystem.FileSystem.of({
          ...real,
          open: (file, options) =>
            options?.flag === "wx"
              ? Effect.andThen(real.writeFileString(path, `k1:${base64}`), real.open(file, options))
              : real.open(file, options)
        })
        const [key] = yield* Effect.provideService(loadSecretKeys(home), FileSystem.FileSystem, overtaken)
        expect(key.id).toBe("k1")
        expect(yield* real.readFileString(path)).toBe(`k1:${base64}`)
        expect(yield* real.readDirectory(home)).toStrictEqual(["secrets.key"])
      })
    )
  )

  it.effect("Processes that start at the same time end with one key", () =>
    inHome((home) =>
      Effect.gen(function* () {
        const script = `
          import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
          import { Effect } from "effect"
          import { loadSecretKeys } from "@tidegate/storage/secrets/Secrets"
          const [key] = await Effect.runPromise(Effect.provide(loadSecretKeys(process.env.SECRETS_HOME), NodeFileSystem.layer))
          process.stdout.write(key.fingerprint)`
        const start = Effect.promise(() =>
          promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], {
            cwd: import.meta.dirname,
            env: { ...process.env, SECRETS_HOME: home }
          })
        )
        const outputs = yield* Effect.all([start, start, start], { concurrency: "unbounded" })
        const [key] = yield* loadSecretKeys(home)
        expect(outputs.map(({ stdout }) => stdout)).toStrictEqual([key.fingerprint, key.fingerprint, key.fingerprint])
      })
    )
  )

  it.effect("A key file of the operator is read, and a warning is logged if others can read it", () =>
    inHome((home, fs) =>
      Effect.gen(function* () {
        const path = join(home, "secrets.key")
        yield* fs.makeDirectory(home, { recursive: true })
        yield* fs.writeFileString(path, `k2:${other},k1:${base64}\n`, { mode: 0o644 })
        const warnings: Array<unknown> = []
        const capture = Logger.layer([Logger.make(({ message }) => void warnings.push(message))])
        const ring = yield* Effect.provide(loadSecretKeys(home), capture)
        expect(ring.map(({ id }) => id)).toStrictEqual(["k2", "k1"])
        expect(warnings.flat()).toStrictEqual([`${path} is readable by others than its owner`])
      })
    )
  )

  it.effect("A key file that cannot be understood is never replaced", () =>
    inHome((home, fs) =>
      Effect.gen(function* () {
        const path = join(home, "secrets.key")
        yield* fs.makeDirectory(home, { recursive: true })
        for (const [content, message] of [
          ["", "no secret key is given"],
          ["cGFzc3dvcmQ=", "secret key 1 has 8 bytes; 32 are needed"]
        ] as const) {
          yield* fs.writeFileString(path, content)
          const error = yield* Effect.flip(loadSecretKeys(home))
          expect(error.message).toBe(`${path}: ${message}`)
          expect(yield* fs.readFileString(path)).toBe(content)
        }
      })
    )
  )

  it.effect("The load fails with its own error where no key file can exist", () =>
    inHome((home, fs) =>
      Effect.gen(function* () {
        yield* fs.makeDirectory(join(home, "secrets.key"), { recursive: true })
        expect((yield* Effect.flip(loadSecretKeys(home)))._tag).toBe("SecretKeyError")
        const file = join(home, "file")
        yield* fs.writeFileString(file, "")
        expect((yield* Effect.flip(loadSecretKeys(join(file, "below"))))._tag).toBe("SecretKeyError")
      })
    )
  )
})

describe("Tokens", () => {
  it("hashToken returns the SHA-256 in hex", () => {
    // printf 'gwk_0123' | openssl dgst -sha256 -r
    expect(hashToken("gwk_0123")).toBe("b78de3eb224b74098b52d81d62ba45d9aa900e91d39a6efd74a079bfbe3cbda9")
  })

  it("constantTimeEqual compares texts of any length", () => {
    expect(constantTimeEqual("", "")).toBe(true)
    expect(constantTimeEqual("tökén", "tökén")).toBe(true)
    for (const [left, right] of [
      ["", "a"],
      ["a", "A"],
      ["token", "token "],
      ["token", "toke"]
    ] as const) {
      expect(constantTimeEqual(left, right)).toBe(false)
    }
  })
})
