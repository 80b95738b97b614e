import { getRequestListener } from '@hono/node-server'
import { createServer, createService } from 'cellkeep'
import { Hono } from 'hono'

const service = await createService({ data_dir: process.env.DATA_DIR ?? 'data', bootstrap: 'live' })

const app = new Hono()
app.get('/', async (context) => {
  const cookie = context.req.header('cookie')
  const visitor = service.call('account_verify', {}, { headers: cookie ? { cookie } : {} })
  const name = await visitor.then(
    ({ username }) => username,
    () => 'stranger',
  )
  return context.text(`Hello, ${name}.`)
})

const server = createServer(service, { request: getRequestListener(app.fetch) })
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => console.log(server.address()))
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => {
    service.leave('draining') // Ends sockets and streams, which would keep the server open.
    server.close(() => service.close())
    server.closeIdleConnections()
  })
