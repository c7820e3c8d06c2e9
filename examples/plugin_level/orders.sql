-- What each customer of a country bought in eleven days.
-- tables
CREATE TABLE customers (id INTEGER, name TEXT, country TEXT);
CREATE TABLE orders (id INTEGER, customer INTEGER, day INTEGER, cents INTEGER);
-- rows
INSERT INTO customers
  WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 499)
  SELECT i, 'customer ' || i, char(65 + i % 20) FROM n;
INSERT INTO orders
  WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
  SELECT i, i * 7919 % 500, i * 104729 % 365, i * 31 % 10000 FROM n;
-- query
SELECT customers.name, sum(orders.cents)
FROM orders JOIN customers ON customers.id = orders.customer
WHERE customers.country = 'D' AND orders.day BETWEEN 100 AND 110
GROUP BY customers.name;
