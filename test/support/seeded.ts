import { Context, Random } from "effect"
import { createHash } from "node:crypto"
import { beforeEach } from "vitest"
import { Random as Seeded } from "../../packages/entities/test/Random.ts"

/*
 * The random runs of a property follow from its name: a commit is either green or not, whoever runs its tests and however often.
 * `TIDEGATE_TEST_SEED=<any text>` has others run, to look for what these do not find.
 */

const seed = process.env["TIDEGATE_TEST_SEED"] ?? ""

/** What Effect draws from, in this process, where nobody provides another one. */
const drawn: { -readonly [Name in keyof typeof Random.Random.Service]: (typeof Random.Random.Service)[Name] } =
  Context.get(Context.empty(), Random.Random)

beforeEach(({ task }) => {
  const hash = createHash("sha256").update(`${seed} ${task.file.name} ${task.fullTestName}`).digest()
  const random = new Seeded(hash.readUInt32BE())
  drawn.nextDoubleUnsafe = () => random.next()
  drawn.nextIntUnsafe = () => random.between(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
})
