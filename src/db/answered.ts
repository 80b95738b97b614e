import type pg from 'pg'

/**
 * Runs a statement. It takes the rows out of the result of the driver, whose objects outlive the call: with their rows,
 * nearly all of what is read would be moved to old memory and be collected late.
 */
export const answered = (client: pg.ClientBase, statement: pg.QueryConfig): Promise<pg.QueryResult> =>
  new Promise<pg.QueryResult>((resolve, reject) => {
    client.query(statement, (error, result) => {
      if (error) return reject(error)
      const taken = { ...result }
      result.rows = []
      resolve(taken)
    })
  }).catch((error) => {
    // As the driver does, so that the stack leads to the caller and not to its socket.
    Error.captureStackTrace(error)
    throw error
  })
