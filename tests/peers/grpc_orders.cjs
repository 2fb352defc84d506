// The tests' shop on Node, by grpc-js, with its own reflection. Never reaches beyond loopback.
// The first argument is the folder with shop/orders.proto; prints the port on one line.
"use strict";

const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");
const { ReflectionService } = require("@grpc/reflection");

const options = { keepCase: true, longs: String, defaults: true, includeDirs: [process.argv[2]] };
const loaded = loader.loadSync("shop/orders.proto", options);
const shop = grpc.loadPackageDefinition(loaded).shop.v1;

const orders = {
  GetOrder: (call, done) =>
    done(null, { number: call.request.number, items: ["tea"], labels: { from: "node" } }),
  PlaceOrder: (call, done) => done(null, call.request),
  WatchOrder: (call) => {
    for (let at = 1; at <= call.request.changes; at += 1) {
      call.write({ number: call.request.number, items: [`change ${at}`] });
    }
    call.end();
  },
  SumOrders: (call, done) => {
    let cents = 0;
    call.on("data", (order) => {
      cents += Number(order.price.cents);
    });
    call.on("end", () => done(null, { currency: "EUR", cents: String(cents) }));
  },
  PriceOrders: (call) => {
    call.on("data", (order) => call.write(order.price));
    call.on("end", () => call.end());
  },
};

const server = new grpc.Server();
server.addService(shop.Orders.service, orders);
new ReflectionService(loaded).addToServer(server);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
});
