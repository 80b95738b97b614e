import type pg from 'pg'
import { Statement } from './statement.ts'

export type Answered = Pick<pg.QueryResult, 'rows' | 'rowCount'>

/**
 * Runs a statement. It takes the rows out of the result of the driver, whose objects outlive the call: with their rows,
 * nearly all of what is read would be moved to old memory and be collected late.
 */
export const answered = (
  client: pg.ClientBase,
  { text, values, name }: { text: string; values: unknown[]; name?: string },
): Promise<Answered> =>
  new Promise<Answered>((resolve, reject) => {
    const callback = (error: Error | null, result: pg.QueryResult): void => {
      if (error) return void reject(error)
      const { rows, rowCount } = result
      result.rows = []
      resolve({ rows, rowCount })
    }
    client.query(new Statement(text, values, name, callback))
  }).catch((error) => {
    // As the driver does, so that the stack leads to the caller and not to its socket.
    Error.captureStackTrace(error)
    throw error
  })
