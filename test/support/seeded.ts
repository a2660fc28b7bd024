import { Context, Random } from "effect"
import { createHash } from "node:crypto"
import { beforeEach } from "vitest"
import { Random as Seeded } from "../../packages/entities/test/Random.ts"
import "./suiteUrls.ts"

/*
 * The random values of a property test follow from its name. So a commit is either green or not, no matter who runs its tests and
 * however often. `TIDEGATE_TEST_SEED=<any text>` uses other random values, to find more.
 */

const seed = process.env["TIDEGATE_TEST_SEED"] ?? ""

/** Effect's default random generator in this process. */
const drawn: { -readonly [Name in keyof typeof Random.Random.Service]: (typeof Random.Random.Service)[Name] } =
  Context.get(Context.empty(), Random.Random)

beforeEach(({ task }) => {
  const hash = createHash("sha256").update(`${seed} ${task.file.name} ${task.fullTestName}`).digest()
  const random = new Seeded(hash.readUInt32BE())
  drawn.nextDoubleUnsafe = () => random.next()
  drawn.nextIntUnsafe = () => random.between(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
})
