import { defaultHashing } from './hashing.ts'
import { password, prepare, slicer, type Target } from './measure.ts'
import { median } from './numbers.ts'
import { Started } from './processes.ts'
import { workloads } from './workloads.ts'

/**
 * `npm run bench:metrics`: what metrics cost a request. Three nodes share a database: one with metrics and two without,
 * whose difference is the error of measurement. They take turns, and the ratio is that of the processor time of
 * neighbouring slices, so that other work on the machine disturbs all alike.
 */
const rounds = 15
const chosen = ['account_verify', 'cell_get', 'cell_list', 'cell_create']
const barPercent = 3

const started = new Started()
try {
  const { world, beside } = await prepare(started, { cells: 2000, sessions: 200, hashing: defaultHashing() })
  const off = await beside({})
  const other = await beside({})
  const on = await beside({ CELLKEEP_METRICS_PORT: '49464' })
  const slice = slicer(started, 1)
  const cases = workloads(world, password).filter(({ name }) => chosen.some((one) => name.includes(one)))
  for (const workload of cases) {
    const cpu = async (node: Target): Promise<number> => (await slice(workload, node)).cpu
    for (let warm = 0; warm < 4; warm++) for (const node of [off, other, on]) await cpu(node)
    const metrics: number[] = []
    const nothing: number[] = []
    for (let round = 0; round < rounds; round++) {
      // Forward and backward, so that steady changes cancel out.
      const [a, b, c] = [await cpu(off), await cpu(on), await cpu(other)]
      const [d, e, f] = [await cpu(other), await cpu(on), await cpu(off)]
      metrics.push((2 * (b + e)) / (a + c + d + f))
      nothing.push((c + d) / (a + f))
    }
    const [percent, error] = [metrics, nothing].map((ratios) => (median(ratios) - 1) * 100) as [
      number,
      number,
    ]
    console.log(
      `${workload.name}: metrics cost ${percent.toFixed(1)} % of the processor time of the server; ` +
        `two nodes without differ by ${error.toFixed(1)} %`,
    )
    if (percent - Math.abs(error) > barPercent) process.exitCode = 1
  }
} finally {
  await started.close()
}
