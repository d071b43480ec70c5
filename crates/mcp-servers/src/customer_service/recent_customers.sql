-- ?1: maximum number of customers; ?2: earliest day of joining, or NULL; ?3: status, or NULL.
WITH dated AS (
    SELECT *,
        (SELECT MAX(purchased_on) FROM purchases
            WHERE purchases.customer_id = customers.customer_id) AS purchased_on,
        (SELECT MAX(created_at) FROM support_tickets
            WHERE support_tickets.customer_id = customers.customer_id) AS ticket_at
    FROM customers
), described AS (
    SELECT *,
        CASE
            WHEN purchased_on IS NULL THEN 'new'
            WHEN purchased_on < (SELECT date(MAX(purchased_on), '-1 year') FROM purchases)
                THEN 'inactive'
            ELSE 'active'
        END AS status,
        MAX(COALESCE(purchased_on, joined_on) || 'T00:00:00Z', COALESCE(ticket_at, ''))
            AS last_activity
    FROM dated
)
SELECT customer_id, name, email, city, country, joined_on, status, last_activity, COUNT(*) OVER ()
FROM described
WHERE (?2 IS NULL OR joined_on >= ?2) AND (?3 IS NULL OR status = ?3)
ORDER BY joined_on DESC, customer_id DESC
LIMIT ?1
