import { type Observer, since } from './observer.ts'
import { inWork } from './work.ts'

/** Counts and times a run of periodic work; `rowsOf` tells how many rows it changed, undefined if another node ran. */
export async function watchJob<T>(
  observer: Observer,
  job: string,
  run: () => Promise<T>,
  rowsOf: (result: T) => number | undefined,
): Promise<T> {
  const began = performance.now()
  const work = (): Promise<T> => inWork({ site: job, fields: {} }, run)
  try {
    const result = await (observer.tracer?.span(`job ${job}`, {}, work) ?? work())
    const rows = rowsOf(result)
    observer.add('job_runs_total', 1, job, rows === undefined ? 'skipped' : 'ok')
    observer.add('job_rows_total', rows ?? 0, job)
    return result
  } catch (error) {
    observer.add('job_runs_total', 1, job, 'failed')
    throw error
  } finally {
    observer.observe('job_seconds', since(began), job)
  }
}
