import { createServer, createService } from 'cellkeep'
import fastify from 'fastify'

const service = await createService({ data_dir: process.env.DATA_DIR ?? 'data', bootstrap: 'live' })

const app = fastify({ serverFactory: (request) => createServer(service, { request }) })
app.get('/', async ({ headers: { cookie } }) => {
  const visitor = service.call('account_verify', {}, { headers: cookie ? { cookie } : {} })
  const name = await visitor.then(
    ({ username }) => username,
    () => 'stranger',
  )
  return `Hello, ${name}.`
})

await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })
console.log(app.server.address())
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => {
    service.leave('draining') // Ends sockets and streams, which would keep the server open.
    void app.close().then(() => service.close())
  })
